"""Changes to a table, described apart from being made: for writers that work on many machines and commit on one.

`LanceDataset.commit(uri, LanceOperation.Append(fragments), read_version=...)` makes one visible.
"""

from __future__ import annotations

import uuid as _uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from ._native import table as native
from .exceptions import InvalidArgumentError
from .fragment import FragmentMetadata
from .schema import LanceSchema

LANCE_COMMIT_MESSAGE_KEY = "__lance_commit_message"
"""The transaction property that holds a commit message; pylance reads and writes the same one."""


class LanceOperation:
    """The operations that `LanceDataset.commit` takes."""

    class BaseOperation:
        """What all operations have in common."""

        name: ClassVar[str] = "Unknown"

        def to_native(
            self, read_version: int, properties: dict[str, str] | None, *, uuid: str | None = None
        ) -> native.Transaction:
            """The transaction that does this to version `read_version`."""
            raise InvalidArgumentError(
                f"a {self.name} can only be read back, expected Append or Overwrite", operation=self.name
            )

    @dataclass
    class Append(BaseOperation):
        """New rows behind those of the table.

        Args:
            fragments: What `write_fragments` returned, from all writers together.
        """

        fragments: Iterable[FragmentMetadata]
        name: ClassVar[str] = "Append"

        def __post_init__(self) -> None:
            self.fragments = _checked(self.fragments)

        def to_native(
            self, read_version: int, properties: dict[str, str] | None, *, uuid: str | None = None
        ) -> native.Transaction:
            """The transaction that does this to version `read_version`."""
            fragments = [fragment.to_native() for fragment in self.fragments]
            return native.Transaction.append(read_version, fragments, properties=properties, uuid=uuid)

    @dataclass
    class Overwrite(BaseOperation):
        """New rows and a new schema in place of all that is there; creates a table where there is none.

        Args:
            new_schema: The schema; field ids must be those in the fragments' files, as `mode="overwrite"` of
                `write_fragments` assigns them.
            fragments: What `write_fragments` returned, from all writers together.
        """

        new_schema: LanceSchema | pa.Schema
        fragments: Iterable[FragmentMetadata]
        name: ClassVar[str] = "Overwrite"

        def __post_init__(self) -> None:
            self.fragments = _checked(self.fragments)

        def to_native(
            self, read_version: int, properties: dict[str, str] | None, *, uuid: str | None = None
        ) -> native.Transaction:
            """The transaction that does this to version `read_version`."""
            schema = self.new_schema
            fields = schema._schema if isinstance(schema, LanceSchema) else native.Schema.from_arrow(schema)
            fragments = [fragment.to_native() for fragment in self.fragments]
            return native.Transaction.overwrite(read_version, fragments, fields, properties=properties, uuid=uuid)

    @dataclass
    class Other(BaseOperation):
        """An operation that another writer committed and that this release can name but not make.

        Args:
            operation: Its name: "Delete", "Update", "CreateIndex"...
        """

        operation: str

        def __post_init__(self) -> None:
            if not self.operation:
                raise InvalidArgumentError("expected the name of an operation, found an empty string")


@dataclass
class Transaction:
    """One change to a table: what it read, what it does, its own id and what the writer noted on it.

    Args:
        read_version: The version that it was made from; 0 for a table that did not exist.
        operation: What it does.
        uuid: Its id, unique among all transactions of all writers.
        transaction_properties: Free text by key.
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(_uuid.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)

    @staticmethod
    def from_native(transaction: native.Transaction) -> Transaction:
        """The transaction that the Rust core decoded."""
        fragments = [FragmentMetadata.from_native(fragment) for fragment in transaction.fragments]
        operation: LanceOperation.BaseOperation
        if transaction.operation == "Append":
            operation = LanceOperation.Append(fragments)
        elif transaction.operation == "Overwrite" and transaction.schema is not None:
            operation = LanceOperation.Overwrite(LanceSchema(transaction.schema), fragments)
        else:
            operation = LanceOperation.Other(transaction.operation)
        return Transaction(transaction.read_version, operation, transaction.uuid, transaction.properties)


def merge_message(message: str | None, properties: dict[str, str] | None) -> dict[str, str] | None:
    """Transaction properties with a commit message among them; the message argument wins over the property."""
    if message is None:
        return dict(properties) if properties else None
    return {**(properties or {}), LANCE_COMMIT_MESSAGE_KEY: message}


def _checked(fragments: Iterable[FragmentMetadata]) -> list[FragmentMetadata]:
    if not isinstance(fragments, list):
        raise TypeError(f"fragments must be list[FragmentMetadata], found {type(fragments).__name__}")
    for fragment in fragments:
        if not isinstance(fragment, FragmentMetadata):
            raise TypeError(f"fragments must be list[FragmentMetadata], found {type(fragment).__name__} in it")
    return fragments
