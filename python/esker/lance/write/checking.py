"""Whether rows can be written at all: what no file can hold as it is is refused before anything is written."""

from __future__ import annotations

import pyarrow as pa

from ...arrow.batch_source import BatchSource
from ...exceptions import InvalidArgumentError, UnsupportedError


def checked(source: BatchSource) -> BatchSource:
    """The source, if a file can hold its columns; see `check_input_schema`."""
    check_input_schema(source.schema)
    return source


def check_input_schema(schema: pa.Schema) -> None:
    """Refuses a schema that no file can hold as it is.

    Raises:
        InvalidArgumentError: Metadata that are no text, or a name with a NUL.
        UnsupportedError: An extension type of which Lance has a form of its own.
    """
    _check_metadata(schema)
    _check_extensions(schema)
    for field in schema:
        _check_name(field)


def _check_metadata(schema: pa.Schema) -> None:
    """Metadata are text in the format: bytes that are not UTF-8 would come back as something else."""
    for key, value in (schema.metadata or {}).items():
        try:
            key.decode()
            value.decode()
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"schema metadata {key!r} is not valid utf8; encode it, for example as base64"
            ) from error


def _check_name(field: pa.Field) -> None:
    """Arrow's C interface ends a name at its first NUL: another one would come through."""
    if "\0" in field.name:
        raise InvalidArgumentError(f"expected names without NUL, found {field.name!r}; choose another name")
    for index in range(field.type.num_fields):
        _check_name(field.type.field(index))


def _check_extensions(schema: pa.Schema) -> None:
    """Lance keeps `arrow.json` in a binary form of its own: as text under that name the peers refuse the table."""
    for field in schema:
        name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
        if "arrow.json" in (name, getattr(field.type, "extension_name", "")):
            raise UnsupportedError(
                f"column {field.name!r}: extension arrow.json (json) cannot be written yet; cast it to a string",
                column=field.name,
                type=str(field.type),
            )
