"""Faults of pylance that the fuzz test meets: each has a test that the peer still has it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.fuzzing.orders import Key


def known_fault(version: str, schema: pa.Schema, options: dict[str, Any], keys: list[Key]) -> str | None:
    """The name of the fault that makes the peer's answer to a scan another one, if there is one."""
    return None
