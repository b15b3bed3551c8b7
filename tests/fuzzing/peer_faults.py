"""Faults of pylance that random scans meet: each has a test in `test_fuzzing_scans` that the peer still has it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.fuzzing.orders import Key, type_at

TOP_OF_NESTED = "the first rows of an order by structs or lists lack those that hold a null"
"""What it has found so far rules rows out as a filter would: by a comparison with a null, which is never true."""


def known_fault(schema: pa.Schema, options: dict[str, Any], keys: list[Key]) -> str | None:
    """The name of the fault that makes the peer's answer to a scan another one, if there is one."""
    if "limit" in options and any(pa.types.is_nested(type_at(schema, key.column)) for key in keys):
        return TOP_OF_NESTED
    return None
