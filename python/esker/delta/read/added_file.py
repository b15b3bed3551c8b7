"""Whether a file that others have added may hold rows of a predicate, by what the log says of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._native.expr import Predicate
from ..._native.store import Store
from ..log.entries import commit_path
from ..log.snapshots import load_snapshot


def may_match(
    head: Sequence[tuple[str, Mapping[str, Any]]], predicates: Sequence[Predicate]
) -> Callable[[Mapping[str, Any]], bool]:
    """What tells of an `add` action whether its file may have rows that are meant.

    Args:
        head: The actions of the table's state: protocol and metadata.
        predicates: Which rows are meant.

    Returns:
        It asks the partition values and the statistics of the file; without any the file may have such rows.

    Example:
        `may_match(TableState.of(snapshot).actions_after(None), [predicate])(add)`
    """
    lines = [json.dumps({name: fields}) for name, fields in head]

    def asked(add: Mapping[str, Any]) -> bool:
        # A log with this file alone, kept in memory while it is asked.
        place = Store(f"memory://{uuid.uuid4()}")
        place.put(commit_path(0), "\n".join([*lines, json.dumps({"add": dict(add)})]).encode())
        try:
            return len(load_snapshot(place).select(place, predicates)) > 0
        finally:
            place.delete(commit_path(0))

    return asked
