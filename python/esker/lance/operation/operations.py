"""`LanceOperation`: the operations of a transaction, under pylance's names (docs/commit-protocol.md).

`LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=...)` commits one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from ..._native import table as native
from ..._native.schema import Schema
from ...declared_keys import check_primary_key
from ...exceptions import InvalidArgumentError, InvalidTypeError, UnsupportedError
from ...missing import missing_class
from ...missing_names import OVERLAYS
from ...schema import LanceSchema
from ..base_path import DatasetBasePath
from ..data_file import DataFile
from ..fragment_metadata import FragmentMetadata
from .index import Index

MapChange: TypeAlias = tuple[dict[str, str | None], bool]


class LanceOperation:
    """The operations that `LanceDataset.commit` takes, and that `LanceDataset.read_transaction` returns."""

    DataOverlay = missing_class("LanceOperation", "DataOverlay", OVERLAYS)
    DataOverlayFile = missing_class("LanceOperation", "DataOverlayFile", OVERLAYS)
    DataOverlayGroup = missing_class("LanceOperation", "DataOverlayGroup", OVERLAYS)

    class BaseOperation:
        """The base class of all operations."""

        name: ClassVar[str] = "Unknown"

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core.

            Raises:
                UnsupportedError: The operation can be read back, but not committed.
            """
            raise UnsupportedError(f"a {self.name} can only be read back", operation=self.name)

        def to_native(
            self, read_version: int, properties: dict[str, str] | None, *, uuid: str | None = None
        ) -> native.Transaction:
            """The transaction that applies this operation to version `read_version`."""
            return native.Transaction(read_version, self.to_operation(), properties=properties, uuid=uuid)

    @dataclass
    class Append(BaseOperation):
        """Appends rows.

        Args:
            fragments: What `write_fragments` returned, from all writers together.
        """

        fragments: Iterable[FragmentMetadata]
        name: ClassVar[str] = "Append"

        def __post_init__(self) -> None:
            self.fragments = _checked(self.fragments)

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.append(_fragments(self.fragments))

    @dataclass
    class Delete(BaseOperation):
        """Deletes rows.

        Args:
            updated_fragments: Fragments with their new deletion files.
            deleted_fragment_ids: The ids of fragments that lost all rows.
            predicate: The condition of the rows, for people to read.
        """

        updated_fragments: Iterable[FragmentMetadata]
        deleted_fragment_ids: Iterable[int]
        predicate: str
        name: ClassVar[str] = "Delete"

        def __post_init__(self) -> None:
            self.updated_fragments = _checked(self.updated_fragments, "updated_fragments")

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.delete(
                _fragments(self.updated_fragments), list(self.deleted_fragment_ids), self.predicate
            )

    @dataclass
    class Overwrite(BaseOperation):
        """Replaces all rows and the schema; creates the table if there is none.

        Args:
            new_schema: The schema; field ids must be those in the fragments' files, as `mode="overwrite"` of
                `write_fragments` assigns them.
            fragments: What `write_fragments` returned, from all writers together.
            initial_bases: The base paths of a new table.
        """

        new_schema: LanceSchema | pa.Schema
        fragments: Iterable[FragmentMetadata]
        initial_bases: list[DatasetBasePath] | None = None
        name: ClassVar[str] = "Overwrite"

        def __post_init__(self) -> None:
            self.fragments = _checked(self.fragments)

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            bases = [base.to_parts() for base in self.initial_bases or ()]
            return native.Operation.overwrite(_fragments(self.fragments), _schema(self.new_schema), initial_bases=bases)

    @dataclass
    class Update(BaseOperation):
        """Updates rows, and may insert new ones.

        Args:
            removed_fragment_ids: The ids of fragments that lost all rows.
            updated_fragments: Fragments with new deletion files, or with new files of some columns.
            new_fragments: Fragments of the changed rows, and of new ones.
            fields_modified: The ids of fields whose values changed within `updated_fragments`: indices on these fields
                no longer cover those fragments.
            fields_for_preserving_frag_bitmap: The ids of fields whose values changed: with stable row ids, indices on
                other fields still cover the new fragments.
            update_mode: "rewrite_rows" (or "") or "rewrite_columns".
            updated_fragment_offsets: The rows that changed in place, by fragment id, as portable roaring bitmaps.
            inserted_rows: The encoded filter over the keys of new rows; pylance has no public argument for it.
        """

        removed_fragment_ids: list[int] = field(default_factory=list)
        updated_fragments: list[FragmentMetadata] = field(default_factory=list)
        new_fragments: list[FragmentMetadata] = field(default_factory=list)
        fields_modified: list[int] = field(default_factory=list)
        fields_for_preserving_frag_bitmap: list[int] = field(default_factory=list)
        update_mode: str = ""
        updated_fragment_offsets: dict[int, bytes] | None = None
        inserted_rows: bytes = b""
        name: ClassVar[str] = "Update"

        def __post_init__(self) -> None:
            self.updated_fragments = _checked(self.updated_fragments, "updated_fragments")
            self.new_fragments = _checked(self.new_fragments, "new_fragments")

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.update(
                removed_fragment_ids=self.removed_fragment_ids,
                updated_fragments=_fragments(self.updated_fragments),
                new_fragments=_fragments(self.new_fragments),
                fields_modified=self.fields_modified,
                fields_for_preserving_frag_bitmap=self.fields_for_preserving_frag_bitmap,
                update_mode=self.update_mode or "rewrite_rows",
                inserted_rows=self.inserted_rows,
                updated_fragment_offsets=self.updated_fragment_offsets or {},
            )

    @dataclass
    class Merge(BaseOperation):
        """Adds columns.

        Args:
            fragments: All fragments of the table, with the files of the new columns.
            schema: All columns of the table.
            preserves_nullability: Whether no column became non-nullable, so that concurrent appends do not conflict.
        """

        fragments: Iterable[FragmentMetadata]
        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False
        name: ClassVar[str] = "Merge"

        def __post_init__(self) -> None:
            self.fragments = _checked(self.fragments)
            if isinstance(self.schema, pa.Schema):
                warnings.warn(
                    "a Merge with a pyarrow schema gives columns new field ids where names changed; pass a LanceSchema",
                    DeprecationWarning,
                    stacklevel=3,
                )

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.merge(
                _fragments(self.fragments),
                _schema(self.schema),
                preserves_nullability=self.preserves_nullability,
            )

    @dataclass
    class Restore(BaseOperation):
        """Restores the contents of an older version.

        Args:
            version: The version to restore.
        """

        version: int
        name: ClassVar[str] = "Restore"

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.restore(self.version)

    @dataclass
    class ReserveFragments(BaseOperation):
        """Reserves fragment ids for a later `Rewrite`.

        Args:
            num_fragments: How many.
        """

        num_fragments: int
        name: ClassVar[str] = "ReserveFragments"

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.reserve_fragments(self.num_fragments)

    @dataclass
    class RewriteGroup:
        """Fragments that a rewrite replaces, and their replacements.

        Args:
            old_fragments: Fragments of the table.
            new_fragments: The fragments that replace them; an id other than 0 must have been reserved.
        """

        old_fragments: Iterable[FragmentMetadata]
        new_fragments: Iterable[FragmentMetadata]

    @dataclass
    class RewrittenIndex:
        """An index whose row addresses were adapted to a rewrite.

        Args:
            old_id: The UUID of the index in the table.
            new_id: The UUID of the index that replaces it.
            new_details_type_url: The type URL of the new index's details.
            new_details_value: The encoded message of that type.
            new_index_version: Readers older than this must not use it.
        """

        old_id: str
        new_id: str
        new_details_type_url: str
        new_details_value: bytes
        new_index_version: int

    @dataclass
    class Rewrite(BaseOperation):
        """Moves rows to other files, as a compaction does.

        Args:
            groups: The fragments that are replaced, and their replacements.
            rewritten_indices: Indices that were adapted. Other indices no longer cover the old fragments.
        """

        groups: Iterable[LanceOperation.RewriteGroup]
        rewritten_indices: Iterable[LanceOperation.RewrittenIndex]
        name: ClassVar[str] = "Rewrite"

        def __post_init__(self) -> None:
            self.groups = list(self.groups)
            self.rewritten_indices = list(self.rewritten_indices)
            for group in self.groups:
                _checked(list(group.old_fragments), "old_fragments")
                _checked(list(group.new_fragments), "new_fragments")

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.rewrite(
                [(_fragments(group.old_fragments), _fragments(group.new_fragments)) for group in self.groups],
                [
                    (
                        index.old_id,
                        index.new_id,
                        index.new_details_type_url,
                        index.new_details_value,
                        index.new_index_version,
                    )
                    for index in self.rewritten_indices
                ],
            )

    @dataclass
    class CreateIndex(BaseOperation):
        """Adds, replaces or drops indices.

        Args:
            new_indices: The indices to add; they replace those of the same names.
            removed_indices: The indices to drop.
        """

        new_indices: list[Index]
        removed_indices: list[Index]
        name: ClassVar[str] = "CreateIndex"

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.create_index(
                [index.to_native() for index in self.new_indices], [index.to_native() for index in self.removed_indices]
            )

    @dataclass
    class DataReplacementGroup:
        """One data file of a fragment, and its fragment.

        Args:
            fragment_id: The fragment.
            new_file: The file; it replaces the one with the same columns.
        """

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """Replaces data files of columns.

        Args:
            replacements: The new files and their fragments.
        """

        replacements: list[LanceOperation.DataReplacementGroup]
        name: ClassVar[str] = "DataReplacement"

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.data_replacement(
                [(group.fragment_id, group.new_file) for group in self.replacements]
            )

    @dataclass
    class Project(BaseOperation):
        """Drops or renames columns; no file changes.

        Args:
            schema: The remaining columns, with their ids.
            preserves_nullability: Whether no column became non-nullable, so that concurrent writes do not conflict.
        """

        schema: LanceSchema
        preserves_nullability: bool = False
        name: ClassVar[str] = "Project"

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.project(_schema(self.schema), preserves_nullability=self.preserves_nullability)

    @dataclass
    class UpdateMap:
        """A change to a map of key-values.

        Args:
            updates: The values to set by key; None removes the key.
            replace: Whether keys that are not in `updates` are removed.
        """

        updates: dict[str, str | None]
        replace: bool = False

    @dataclass
    class UpdateConfig(BaseOperation):
        """Changes key-values of the table, its schema and its fields. None leaves a map as it is.

        Args:
            config_updates: The table's config: settings for writers.
            table_metadata_updates: The table's metadata: free text of the user.
            schema_metadata_updates: The metadata of the Arrow schema.
            field_metadata_updates: The metadata of Arrow fields, by field id.
        """

        config_updates: LanceOperation.UpdateMap | None = None
        table_metadata_updates: LanceOperation.UpdateMap | None = None
        schema_metadata_updates: LanceOperation.UpdateMap | None = None
        field_metadata_updates: dict[int, LanceOperation.UpdateMap] | None = None
        name: ClassVar[str] = "UpdateConfig"

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            fields = self.field_metadata_updates or {}
            return native.Operation.update_config(
                config_updates=_map_change(self.config_updates),
                table_metadata_updates=_map_change(self.table_metadata_updates),
                schema_metadata_updates=_map_change(self.schema_metadata_updates),
                field_metadata_updates={id_: (change.updates, change.replace) for id_, change in fields.items()},
            )

    @dataclass
    class Clone(BaseOperation):
        """Clones another table. Can be read back, but not committed.

        Args:
            is_shallow: Whether the clone shares the source's files.
            ref_name: The source's branch, None for the main branch.
            ref_version: The source's version.
            ref_path: The source's URI.
            branch_name: The branch that the clone is, if it is one.
        """

        is_shallow: bool
        ref_name: str | None
        ref_version: int
        ref_path: str
        branch_name: str | None
        name: ClassVar[str] = "Clone"

    @dataclass
    class UpdateBases(BaseOperation):
        """Adds base paths.

        Args:
            new_bases: The base paths; those without an id get one.
        """

        new_bases: list[DatasetBasePath]
        name: ClassVar[str] = "UpdateBases"

        def to_operation(self) -> native.Operation:
            """The operation of the Rust core."""
            return native.Operation.update_bases([base.to_parts() for base in self.new_bases])

    @dataclass
    class Other(BaseOperation):
        """An operation that another writer committed and that this release cannot commit.

        Args:
            operation: Its name: "UpdateMemWalState", "DataOverlay"...
        """

        operation: str

        def __post_init__(self) -> None:
            if not self.operation:
                raise InvalidArgumentError("expected the name of an operation, found an empty string")

        def to_operation(self) -> native.Operation:
            """Raises `UnsupportedError`: it can only be read back."""
            raise UnsupportedError(
                f"{self.operation} can only be read back, expected an operation that this release can commit",
                operation=self.operation,
            )


def _checked(fragments: Iterable[FragmentMetadata], name: str = "fragments") -> list[FragmentMetadata]:
    if not isinstance(fragments, list):
        raise TypeError(f"{name} must be list[FragmentMetadata], found {type(fragments).__name__}")
    for fragment in fragments:
        if not isinstance(fragment, FragmentMetadata):
            raise TypeError(f"{name} must be list[FragmentMetadata], found {type(fragment).__name__} in it")
    return fragments


def _fragments(fragments: Iterable[FragmentMetadata]) -> list[native.Fragment]:
    return [fragment.to_native() for fragment in fragments]


def _schema(schema: LanceSchema | pa.Schema) -> Schema:
    if isinstance(schema, LanceSchema):
        return schema._schema
    if not isinstance(schema, pa.Schema):
        found = type(schema).__name__
        raise InvalidTypeError(f"expected new_schema to be a pyarrow.Schema or a LanceSchema, found {found}")
    check_primary_key(schema)
    return Schema.from_arrow(schema)


def _map_change(change: LanceOperation.UpdateMap | None) -> MapChange | None:
    return None if change is None else (change.updates, change.replace)


def _metadata(fragments: Iterable[native.Fragment]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_native(fragment) for fragment in fragments]


def _update_map(change: MapChange | None) -> LanceOperation.UpdateMap | None:
    return None if change is None else LanceOperation.UpdateMap(*change)


def _overwrite(fields: dict[str, Any]) -> LanceOperation.BaseOperation:
    bases = [DatasetBasePath.from_parts(parts) for parts in fields["initial_bases"]]
    return LanceOperation.Overwrite(LanceSchema(fields["schema"]), _metadata(fields["fragments"]), bases or None)


def _update(fields: dict[str, Any]) -> LanceOperation.BaseOperation:
    fragments = {name: _metadata(fields[name]) for name in ("updated_fragments", "new_fragments")}
    offsets = fields["updated_fragment_offsets"] or None
    return LanceOperation.Update(**{**fields, **fragments, "updated_fragment_offsets": offsets})


def _rewrite(fields: dict[str, Any]) -> LanceOperation.BaseOperation:
    groups = [LanceOperation.RewriteGroup(_metadata(old), _metadata(new)) for old, new in fields["groups"]]
    return LanceOperation.Rewrite(groups, [LanceOperation.RewrittenIndex(*it) for it in fields["rewritten_indices"]])


def _create_index(fields: dict[str, Any]) -> LanceOperation.BaseOperation:
    return LanceOperation.CreateIndex(
        [Index.from_native(index) for index in fields["new_indices"]],
        [Index.from_native(index) for index in fields["removed_indices"]],
    )


def _update_config(fields: dict[str, Any]) -> LanceOperation.BaseOperation:
    of_fields = {id_: LanceOperation.UpdateMap(*change) for id_, change in fields["field_metadata_updates"].items()}
    names = ("config_updates", "table_metadata_updates", "schema_metadata_updates")
    return LanceOperation.UpdateConfig(
        **{name: _update_map(fields[name]) for name in names}, field_metadata_updates=of_fields or None
    )


_MAKERS: dict[str, Callable[[dict[str, Any]], LanceOperation.BaseOperation]] = {
    "Append": lambda fields: LanceOperation.Append(_metadata(fields["fragments"])),
    "Delete": lambda fields: LanceOperation.Delete(
        _metadata(fields["updated_fragments"]), fields["deleted_fragment_ids"], fields["predicate"]
    ),
    "Overwrite": _overwrite,
    "CreateIndex": _create_index,
    "Rewrite": _rewrite,
    "Merge": lambda fields: LanceOperation.Merge(
        _metadata(fields["fragments"]), LanceSchema(fields["schema"]), fields["preserves_nullability"]
    ),
    "Restore": lambda fields: LanceOperation.Restore(**fields),
    "ReserveFragments": lambda fields: LanceOperation.ReserveFragments(**fields),
    "Update": _update,
    "Project": lambda fields: LanceOperation.Project(LanceSchema(fields["schema"]), fields["preserves_nullability"]),
    "UpdateConfig": _update_config,
    "DataReplacement": lambda fields: LanceOperation.DataReplacement(
        [LanceOperation.DataReplacementGroup(*group) for group in fields["replacements"]]
    ),
    "Clone": lambda fields: LanceOperation.Clone(**fields),
    "UpdateBases": lambda fields: LanceOperation.UpdateBases(
        [DatasetBasePath.from_parts(parts) for parts in fields["new_bases"]]
    ),
}


def operation_from_native(operation: native.Operation) -> LanceOperation.BaseOperation:
    """The operation that the Rust core decoded.

    Example:
        `operation_from_native(transaction.decoded()).name`
    """
    maker = _MAKERS.get(operation.name)
    return maker(operation.fields()) if maker else LanceOperation.Other(operation.name)
