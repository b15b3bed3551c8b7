"""`esker schema` and `esker versions`: the columns of a table, and its history."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from ..dataset import LanceDataset
from ..exceptions import InvalidArgumentError, NotFoundError
from ..lance.operation import LANCE_COMMIT_MESSAGE_KEY, LanceOperation
from ..schema import LanceField
from ..store.kinds import REPOSITORY
from .output import Output, size_text


def open_table(options: Namespace) -> LanceDataset:
    """Opens the table of a command line.

    Raises:
        NotFoundError: There is no Lance table at the URI.
    """
    try:
        return LanceDataset(options.uri, getattr(options, "at", None), storage_options=storage_options(options))
    except NotFoundError as error:
        if error.found != REPOSITORY.name:
            raise
        message = f"expected a Lance table at {options.uri}, found a repository; see esker repo --help"
        raise NotFoundError(message, uri=options.uri) from None


def storage_options(options: Namespace) -> dict[str, str] | None:
    """The storage options of a command line.

    Raises:
        InvalidArgumentError: One is not KEY=VALUE.
    """
    found = {}
    for text in options.storage_option:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidArgumentError("expected --storage-option KEY=VALUE, found one without '='")
        found[key] = value
    return found or None


def schema(options: Namespace, output: Output) -> None:
    """Prints the columns of a table, nested ones below their parents."""
    dataset = open_table(options)
    fields = [
        {
            "id": field.id(),
            "name": field.name(),
            "path": path,
            "type": field.logical_type(),
            "nullable": field.nullable(),
        }
        for path, _, field in _walk(dataset.lance_schema.fields())
    ]
    if output.as_json:
        metadata = {key.decode(): value.decode() for key, value in (dataset.schema.metadata or {}).items()}
        output.json({"fields": fields, "metadata": metadata})
        return
    rows = [
        (str(field.id()), "  " * depth + field.name(), field.logical_type(), "" if field.nullable() else "not null")
        for _, depth, field in _walk(dataset.lance_schema.fields())
    ]
    output.table(None, [("id", True), ("column", False), ("type", False), ("", False)], rows)


def versions(options: Namespace, output: Output) -> None:
    """Prints the versions of a table, newest last."""
    dataset = open_table(options)
    found: list[dict[str, Any]] = []
    listed = dataset.versions()
    with output.progress("reading versions", len(listed)) as tally:
        for version in listed:
            transaction = dataset.read_transaction(version["version"])
            properties = dict((transaction.transaction_properties if transaction else None) or {})
            counts = version["metadata"]
            found.append(
                {
                    "version": version["version"],
                    "committed": version["timestamp"],
                    "operation": operation_name(transaction.operation) if transaction else None,
                    "rows": int(counts["total_rows"]),
                    "fragments": int(counts["total_fragments"]),
                    "bytes": int(counts["total_files_size"]),
                    "message": properties.pop(LANCE_COMMIT_MESSAGE_KEY, None),
                    "properties": properties,
                }
            )
            tally.add(parts=1)
    if output.as_json:
        output.json(found)
        return
    columns = [("version", True), ("committed", False), ("operation", False), ("rows", True)]
    columns += [("fragments", True), ("size", True), ("message", False)]
    rows = [
        (
            str(item["version"]),
            f"{item['committed']:%Y-%m-%d %H:%M:%S}",
            item["operation"] or "?",
            f"{item['rows']:,}",
            f"{item['fragments']:,}",
            size_text(item["bytes"]),
            item["message"] or "",
        )
        for item in found
    ]
    output.table(None, columns, rows)


def operation_name(operation: LanceOperation.BaseOperation) -> str:
    """The name of an operation."""
    return operation.operation if isinstance(operation, LanceOperation.Other) else operation.name


def _walk(fields: list[LanceField], parent: str = "", depth: int = 0) -> Iterator[tuple[str, int, LanceField]]:
    for field in fields:
        path = parent + field.name()
        yield path, depth, field
        yield from _walk(field.children(), f"{path}.", depth + 1)
