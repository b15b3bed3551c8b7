"""Manifests, fragments and transactions of a Lance table: opaque handles and pure rules."""

from collections.abc import Sequence
from typing import Any, Literal, final

from typing_extensions import disjoint_base

from .scan import ArrowArrayExportable
from .schema import Schema
from .store import Store

__all__ = [
    "DataFile",
    "Fragment",
    "HeldColumns",
    "Index",
    "Manifest",
    "Operation",
    "Transaction",
    "manifest_name",
    "parse_manifest_name",
]

@disjoint_base
class DataFile:
    """One file of a fragment: some columns of all its rows."""

    def __new__(
        cls,
        path: str,
        fields: Sequence[int] = ...,
        column_indices: Sequence[int] = ...,
        file_major_version: int = 0,
        file_minor_version: int = 0,
        file_size_bytes: int | None = None,
        base_id: int | None = None,
    ) -> DataFile: ...
    @property
    def path(self) -> str:
        """Path relative to the table's data folder."""

    @property
    def location(self) -> str:
        """Where it lies, for the store of its table."""

    @property
    def fields(self) -> list[int]:
        """Field ids of the columns in this file; -2 marks one that was dropped."""

    @property
    def column_indices(self) -> list[int]:
        """For each of `fields` the number of its column in the file, -1 for one without (a struct in 2.1)."""

    @property
    def file_major_version(self) -> int:
        """Major version of the file format."""

    @property
    def file_minor_version(self) -> int:
        """Minor version of the file format."""

    @property
    def file_size_bytes(self) -> int | None:
        """Size in bytes, where the writer told."""

    @property
    def base_id(self) -> int | None:
        """The base path that the file lies under; None is the table's own root."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Fragment:
    """A horizontal slice of a table, kept as encoded bytes so that what this release does not know survives."""

    def __new__(cls, id: int = 0, *, files: Sequence[DataFile], physical_rows: int) -> Fragment: ...
    @staticmethod
    def decode(data: bytes) -> Fragment:
        """The fragment that `encode` wrote."""

    def encode(self) -> bytes:
        """The fragment's protobuf message."""

    def with_id(self, id: int) -> Fragment:
        """The same fragment with another id."""

    def with_file(self, file: DataFile) -> Fragment:
        """The same fragment with one more file."""

    def with_replacing_file(self, file: DataFile) -> Fragment:
        """The same fragment with a file that takes over its columns from the files that had them."""

    def with_deletion_file(
        self,
        read_version: int,
        id: int,
        file_type: str,
        num_deleted_rows: int,
        base_id: int | None = None,
    ) -> Fragment:
        """The same fragment with other deleted rows. Raises `InvalidArgumentError` for a type that is neither "array"
        nor "bitmap"."""

    def stored_lineage(self, sequence: str) -> tuple[str, bytes] | None:
        """How a sequence is stored, "inline", "external" or "spilled", and the message of that; None without it. It is
        named by its column: "_rowid", "_row_created_at_version" or "_row_last_updated_at_version"."""

    def with_stored_lineage(self, sequence: str, form: str, payload: bytes) -> Fragment:
        """The same fragment, whose sequence is stored as the message says. Raises `InvalidArgumentError` for another
        sequence or form."""

    def inline_row_ids(self) -> list[int]:
        """The stable row ids of its rows, which must be stored inline."""

    def with_row_ids(self, ids: ArrowArrayExportable) -> Fragment:
        """The same new fragment, whose first rows keep these stable row ids (uint64, no nulls); the commit gives ids to
        the rows behind them."""

    @property
    def id(self) -> int:
        """Unique within the table; 0 until a transaction assigns it."""

    @property
    def files(self) -> list[DataFile]:
        """The data files, each with all rows of some columns."""

    @property
    def physical_rows(self) -> int:
        """Rows in the data files, deleted ones among them."""

    @property
    def num_deletions(self) -> int:
        """Rows that are deleted."""

    @property
    def num_rows(self) -> int | None:
        """Rows that are live: `physical_rows - num_deletions`. None where an old writer did not note enough to know."""

    @property
    def deletion_file(self) -> str | None:
        """Path of the deletion file relative to the table's root, None if no row is deleted."""

    @property
    def deletion_parts(self) -> tuple[int, int, str, int, int | None] | None:
        """Of the deletion file: the version that its writer had read, its random id, "array" or "bitmap", how many rows
        it deletes (0 where an old writer did not note that), its base path."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Manifest:
    """One version of a table. What this release does not know is carried byte for byte."""

    @staticmethod
    def decode(data: bytes, path: str) -> Manifest:
        """The manifest in a whole manifest file; `path` is for error messages.

        Raises `CorruptFileError` if the bytes are no manifest. Does not check feature flags.
        """

    @staticmethod
    def read(store: Store, path: str) -> Manifest:
        """The manifest in a file of a store, whose bytes are not copied.

        Raises `NotFoundError` if there is none, and `CorruptFileError` if the bytes are no manifest. Does not check
        feature flags.
        """

    def encode(self) -> bytes:
        """The whole manifest file."""

    @property
    def size_in_file(self) -> int | None:
        """Bytes of the file that it was read from; None if it was made in memory."""

    @property
    def version(self) -> int:
        """The version of the table that this is."""

    @property
    def timestamp_ns(self) -> int:
        """When it was committed, in nanoseconds since the Unix epoch; 0 if the writer did not say."""

    @property
    def data_storage_version(self) -> str:
        """The file version that its data files have: "0.1", "2.0", "2.1", "2.2"."""

    @property
    def storage_version_to_write(self) -> str:
        """The version of data files that are added: that of those which are there, even where an old release noted
        another one. Raises `CorruptFileError` if they are of 0.1 and of later versions."""

    @property
    def reader_feature_flags(self) -> int:
        """The feature flags that a reader must support."""

    @property
    def writer_feature_flags(self) -> int:
        """The feature flags that a writer must support."""

    @property
    def writer_version(self) -> tuple[str, str] | None:
        """The library that wrote it, and its version; None if it did not say."""

    @property
    def transaction_file(self) -> str | None:
        """Name, within `_transactions/`, of the transaction that made it; None if the writer did not say."""

    @property
    def schema(self) -> Schema:
        """The table's columns."""

    @property
    def config(self) -> dict[str, str]:
        """The table's configuration."""

    @property
    def table_metadata(self) -> dict[str, str]:
        """The user's own key-values about the table."""

    @property
    def max_fragment_id(self) -> int | None:
        """The highest fragment id given out so far, None if none was."""

    @property
    def max_field_id(self) -> int:
        """The highest field id that the schema or a data file uses."""

    @property
    def branch(self) -> str | None:
        """The branch, None for the main line."""

    @property
    def base_paths(self) -> list[tuple[int, str | None, bool, str]]:
        """The base paths, roots of files outside of the table's own: id, name, whether it is the root of a table, and path."""

    @property
    def indices(self) -> list[Index]:
        """The segments of all indices."""

    def index_coverage(self, store: Store) -> dict[int, list[str]]:
        """For each fragment the UUIDs of the index segments that cover it, sorted. An index may list fragments that were
        replaced by this one: the fragment reuse index, which lies in `store` if it is large, says so."""

    @property
    def num_fragments(self) -> int:
        """How many fragments there are."""

    @property
    def num_rows(self) -> int | None:
        """Live rows. None where an old writer did not note enough to know."""

    def fragments(self) -> list[Fragment]:
        """All fragments, in order."""

    def summary(self) -> dict[str, int]:
        """Counts over all fragments: `total_fragments`, `total_data_files`, `total_files_size` (bytes),
        `total_data_file_rows`, `total_deletion_files`, `total_deletion_file_rows`, `total_rows`."""

    def fragments_of_versions(self, after: int, upto: int, *, created: bool) -> list[int]:
        """The ids of the fragments with rows that were created, or else last changed, after version `after` up to `upto`.
        Nothing is read: fragments whose versions lie in other files are among them whatever those say.
        """

    def check_readable(self) -> None:
        """Raises `UnsupportedError`, naming the bit, if a reader feature flag is unknown."""

    def check_writable(self) -> None:
        """Raises `UnsupportedError`, naming the bit, if a writer feature flag is unknown."""

    def inline_transaction(self) -> Transaction | None:
        """The transaction that made it, if the manifest file holds it."""

    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Index:
    """One segment of an index, kept as encoded bytes so that what this release does not know survives."""

    def __new__(
        cls,
        uuid: str,
        name: str,
        fields: Sequence[int],
        dataset_version: int,
        fragment_ids: Sequence[int],
        index_version: int,
        *,
        created_at_ms: int | None = None,
        base_id: int | None = None,
        details: tuple[str, bytes] | None = None,
    ) -> Index: ...
    @staticmethod
    def decode(data: bytes) -> Index:
        """The index that `encode` wrote."""

    def encode(self) -> bytes:
        """The index's protobuf message."""

    @property
    def uuid(self) -> str:
        """Names its folder in `_indices/`."""

    @property
    def name(self) -> str:
        """Segments of one index share it."""

    @property
    def fields(self) -> list[int]:
        """The ids of the fields that it covers."""

    @property
    def dataset_version(self) -> int:
        """The version whose rows it was built from."""

    @property
    def fragment_ids(self) -> list[int] | None:
        """The fragments that it covers; None where its writer did not say."""

    @property
    def index_version(self) -> int:
        """Readers older than this must not use it."""

    @property
    def created_at_ms(self) -> int | None:
        """When it was made, in milliseconds since the Unix epoch."""

    @property
    def folder(self) -> str:
        """Where its files lie, for the store of its table."""

    @property
    def base_id(self) -> int | None:
        """The base path that its folder lies under; None is the table's own root."""

    @property
    def details(self) -> tuple[str, bytes] | None:
        """What it needs to open itself: type URL and encoded message."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Operation:
    """What a transaction does. One maker for each operation of the format; compares by value."""

    @staticmethod
    def append(fragments: Sequence[Fragment]) -> Operation:
        """New rows."""

    @staticmethod
    def delete(updated_fragments: Sequence[Fragment], deleted_fragment_ids: Sequence[int], predicate: str) -> Operation:
        """Rows deleted: fragments with new deletion files, and fragments that lost all rows."""

    @staticmethod
    def overwrite(
        fragments: Sequence[Fragment],
        schema: Schema,
        *,
        config: dict[str, str] | None = None,
        initial_bases: Sequence[tuple[int, str | None, bool, str]] = ...,
    ) -> Operation:
        """New rows and a new schema instead of all that is there; `config` entries are set. `initial_bases` are the base
        paths of a new table, as `Manifest.base_paths` has them."""

    @staticmethod
    def update_bases(new_bases: Sequence[tuple[int, str | None, bool, str]]) -> Operation:
        """New base paths; those of id 0 get one."""

    @staticmethod
    def clone_of(*, is_shallow: bool, ref_name: str | None, ref_version: int, ref_path: str) -> Operation:
        """A table that borrows (shallow) or has copied all files of a version of another one."""

    @staticmethod
    def create_index(new_indices: Sequence[Index], removed_indices: Sequence[Index]) -> Operation:
        """Indices that replace those of the same names; removed ones are matched by their UUIDs."""

    @staticmethod
    def rewrite(
        groups: Sequence[tuple[Sequence[Fragment], Sequence[Fragment]]],
        rewritten_indices: Sequence[tuple[str, str, str, bytes, int]],
    ) -> Operation:
        """The same rows in other files: groups of (old, new) fragments; indices as (old UUID, new UUID, type URL of the
        details, details, version). Raises `InvalidArgumentError` for what is no UUID."""

    @staticmethod
    def merge(fragments: Sequence[Fragment], schema: Schema, *, preserves_nullability: bool = False) -> Operation:
        """New columns: all fragments of the table and all its columns."""

    @staticmethod
    def restore(version: int) -> Operation:
        """The contents of an older version again."""

    @staticmethod
    def reserve_fragments(num_fragments: int) -> Operation:
        """Fragment ids set aside for a later rewrite."""

    @staticmethod
    def update(
        *,
        removed_fragment_ids: Sequence[int] = ...,
        updated_fragments: Sequence[Fragment] = ...,
        new_fragments: Sequence[Fragment] = ...,
        fields_modified: Sequence[int] = ...,
        fields_for_preserving_frag_bitmap: Sequence[int] = ...,
        update_mode: str = "rewrite_rows",
        inserted_rows: bytes = ...,
        updated_fragment_offsets: dict[int, bytes] = ...,
    ) -> Operation:
        """Rows changed, and perhaps added. `inserted_rows` is the encoded filter over the keys of new rows. Raises
        `InvalidArgumentError` for an unknown `update_mode` (the other one is "rewrite_columns")."""

    @staticmethod
    def project(schema: Schema, *, preserves_nullability: bool = False) -> Operation:
        """Columns dropped or renamed."""

    @staticmethod
    def update_config(
        *,
        config_updates: tuple[dict[str, str | None], bool] | None = None,
        table_metadata_updates: tuple[dict[str, str | None], bool] | None = None,
        schema_metadata_updates: tuple[dict[str, str | None], bool] | None = None,
        field_metadata_updates: dict[int, tuple[dict[str, str | None], bool]] = ...,
    ) -> Operation:
        """Key-values: (entries, whether they replace all others); a value of None removes a key."""

    @staticmethod
    def data_replacement(replacements: Sequence[tuple[int, DataFile]]) -> Operation:
        """Files of columns replaced: (fragment id, new file)."""

    @property
    def name(self) -> str:
        """As pylance spells it: "Append", "Delete"...; "unknown operation" for one from a newer release."""

    def fields(self) -> dict[str, Any]:
        """The arguments that make it, by name; nothing for operations that cannot be made."""

    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class HeldColumns:
    """The fields that a staged change names, as one version has them: an id may come to mean another column."""

    def after(self, theirs: Transaction, made: Manifest) -> HeldColumns | None:
        """The same in the version that `theirs` made of that one; None if an id means another column there."""

@final
class Transaction:
    """A change to a table: what it read, what it does, and an id of its own."""

    def __new__(
        cls,
        read_version: int,
        operation: Operation,
        *,
        properties: dict[str, str] | None = None,
        uuid: str | None = None,
    ) -> Transaction: ...
    @staticmethod
    def append(
        read_version: int,
        fragments: Sequence[Fragment],
        *,
        properties: dict[str, str] | None = None,
        uuid: str | None = None,
    ) -> Transaction:
        """New rows: `fragments` go behind those of the table. `uuid` is drawn if it is not given."""

    @staticmethod
    def overwrite(
        read_version: int,
        fragments: Sequence[Fragment],
        schema: Schema,
        *,
        config: dict[str, str] | None = None,
        properties: dict[str, str] | None = None,
        uuid: str | None = None,
    ) -> Transaction:
        """New rows and a new schema instead of all that is there; `config` entries are set."""

    @staticmethod
    def decode(data: bytes) -> Transaction:
        """The transaction in a transaction file. Operations that this release does not know decode too."""

    def encode(self) -> bytes:
        """The bytes of its transaction file."""

    @property
    def is_inline(self) -> bool:
        """Whether the manifest that it makes holds it as well as its file: it does if it is small."""

    @property
    def read_version(self) -> int:
        """The version that it was made from; 0 for a table that did not exist."""

    @property
    def uuid(self) -> str:
        """Its own id: the write id that the commit loop looks for."""

    @property
    def operation(self) -> str:
        """The operation's name: "Append", "Overwrite", "Delete"...; "Unknown" for one from a newer release."""

    @property
    def properties(self) -> dict[str, str]:
        """The writer's properties of it."""

    @property
    def fragments(self) -> list[Fragment]:
        """The fragments that it adds (of an append or an overwrite; otherwise none)."""

    @property
    def schema(self) -> Schema | None:
        """The schema that it brings (of an overwrite)."""

    def decoded(self) -> Operation:
        """What it does. Raises `CorruptFileError` if its operation is damaged."""

    def reconcile(
        self, store: Store, before: Manifest, theirs: Manifest, change: Transaction | None = None
    ) -> Transaction | None:
        """This Delete or Update, right on top of `before`, as it is right on top of `theirs`: rows of one fragment that
        both deleted are put into one deletion file, which is written to `store`. None if it must be computed again:
        both deleted the same row, or the fragment has other files.

        A Rewrite is returned without the groups whose old fragments `change`, the transaction behind `theirs`, did not
        only delete rows of; None if it has no other groups. `apply` deletes these rows in its new fragments.
        """

    def may_insert_same_keys(self, other: Transaction) -> bool:
        """Whether both may have inserted a row with the same key, by this one's key filter."""

    def conflict_with(self, other: Transaction) -> Literal["compatible", "retry", "incompatible"]:
        """The verdict (conflict or not) on this change after `other`, which was committed since its read version."""

    def held_columns(self, read: Manifest) -> HeldColumns | None:
        """The fields that it names, as they are in `read`, its read version; None if it names none."""

    def apply_clone(self, source: Manifest, *, timestamp_ns: int) -> Manifest:
        """The first version of the table that this Clone makes of another table's version, under the same number."""

    def apply(
        self,
        base: Manifest | None,
        *,
        version: int,
        data_storage_version: str,
        timestamp_ns: int,
        restored: Manifest | None = None,
        read: Manifest | None = None,
        store: Store | None = None,
        enable_stable_row_ids: bool = False,
    ) -> Manifest:
        """The manifest of `version`: this change on top of `base` (None: a table that does not exist yet). A Restore
        needs the manifest of the version that it restores. `enable_stable_row_ids` counts for a new table only. With
        `read`, the version that a CreateIndex was made of, its indices do not cover fragments whose values of their
        columns lie in other files by now.

        Its `transaction_file` is `{read_version}-{uuid}.txn`. Where the files are of version 0.1, `store` is where the
        dictionaries of new ones are read from, which the manifest is to hold. A Rewrite writes to `store` the deletion
        files of its new fragments, for rows that were deleted since its read version, and a large fragment reuse index.
        """

    def __reduce__(self) -> tuple[Any, ...]: ...

def manifest_name(version: int, scheme: Literal["V1", "V2"]) -> str:
    """The file name of a version within `_versions/`."""

def parse_manifest_name(name: str) -> tuple[int, Literal["V1", "V2"]] | None:
    """The version and the scheme of a file name within `_versions/`; None if it names no version."""
