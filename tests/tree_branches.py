"""What tests of one table's tags and branches share: a table of three versions, and what both libraries find."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import lance
import pyarrow as pa

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.store import stores
from tests.watched_stores import in_another_thread

Watch: TypeAlias = Callable[[str, str], str | None]


@contextmanager
def watched_stores() -> Iterator[dict[str, Watch]]:
    """`watched["f"]` sees each operation of the test's own thread on local stores, and may name a fault."""
    found: dict[str, Watch] = {}
    before = stores._factories["file"]

    def make(uri: str, options: Any, durable: bool) -> Store:
        if threading.current_thread() is not threading.main_thread():
            return before(uri, options, durable)
        # A branch's store has its own root: a watch sees whole paths.
        inner = Store(uri, durable=False)
        return FaultStore(inner, watch=lambda verb, path: found["f"](verb, f"{uri}/{path}") if found else None).store

    stores.register("file", make)
    yield found
    stores.register("file", before)


def rows_of(*ids: int) -> pa.Table:
    """Rows with these ids."""
    return pa.table({"id": pa.array(ids, pa.int64())})


def three_versions(uri: str) -> str:
    """A table of three versions with rows 0, then 1, then 2."""
    for number in range(3):
        esker.write_dataset(rows_of(number), uri, mode="append" if number else "create")
    return uri


def ids_of(dataset: Any) -> list[int]:
    """The ids of a dataset's rows, of either library, in their order."""
    found: list[int] = dataset.to_table()["id"].to_pylist()
    return sorted(found)


def agree(uri: str, branch: str | None, ids: list[int]) -> None:
    """Both libraries find these rows on a branch."""
    assert ids_of(esker.dataset(uri, version=(branch, None))) == ids
    assert ids_of(lance.dataset(uri).checkout_version((branch, None))) == ids
    esker.dataset(uri, version=(branch, None)).validate()


def files_below(uri: str) -> set[str]:
    """The paths of all files below a folder."""
    return {path.relative_to(uri).as_posix() for path in Path(uri).rglob("*") if path.is_file()}


def meanwhile(work: Callable[[], object], *, verb: str, part: str, nth: int = 1) -> Watch:
    """A watch that does some work before the nth operation of a kind."""
    seen = 0

    def watch(operation: str, path: str) -> str | None:
        nonlocal seen
        if operation == verb and part in path:
            seen += 1
            if seen == nth:
                in_another_thread(work)
        return None

    return watch
