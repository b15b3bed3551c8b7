"""Requests of commits and merges of tables in a repository: `python -m benches.repo_tables`.

```
repository   requests for refs, commits, metaranges and ranges
tables       requests for what the tables themselves read and write
```

Each operation is counted with a handle that has read nothing before, over a store in memory.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

import esker
from esker._native.fault import FaultStore
from esker._native.store import Store
from esker.delta import write_deltalake
from esker.repo import Repository
from esker.store import stores

SCHEME = "counted"
FORMATS = ["lance", "delta"]
MOST = 10
_WRITES = {"put", "put_if_absent", "put_atomic", "delete", "delete_all", "writer"}
_NUMBERS = itertools.count()
_made: list[FaultStore] = []
ROWS = pa.table({"id": pa.array(range(100), pa.int64())})


def _open(uri: str, options: Mapping[str, str], durable: bool) -> Store:
    _made.append(FaultStore(Store("memory://" + uri.removeprefix(f"{SCHEME}://"))))
    return _made[-1].store


stores.register(SCHEME, _open, is_behind_network=True)


@dataclass(frozen=True)
class Requests:
    """Requests of one operation: those for the repository itself, and those for what lies in it."""

    repository: Counter[str]
    tables: Counter[str]

    def row(self) -> tuple[int, int, int, int]:
        """Reads and writes of the repository, reads and writes of tables."""
        return (self.repository["read"], self.repository["write"], self.tables["read"], self.tables["write"])


def append(format: str, uri: str) -> None:
    """Appends rows to a table, or makes it."""
    if format == "lance":
        esker.write_dataset(ROWS, uri, mode="append")
    else:
        write_deltalake(uri, ROWS, mode="append")


def append_to(format: str, repository: Repository, branch: str, count: int) -> None:
    """Appends to so many tables by one transaction."""
    with repository.branch(branch).transact("append") as tx:
        for n in range(count):
            append(format, tx.store_uri(f"t{n}"))


def lose(format: str, repository: Repository, count: int) -> Callable[[], None]:
    """A transaction over so many tables, during which another commits to all of them."""
    faster = Repository(repository.uri)

    def work() -> None:
        with repository.branch("main").transact("append") as tx:
            for n in range(count):
                append(format, tx.store_uri(f"t{n}"))
            append_to(format, faster, "main", count)

    return work


def merge(format: str, repository: Repository, count: int) -> Callable[[], None]:
    """A merge that takes so many tables whole."""
    other = Repository(repository.uri)
    append_to(format, other, "dev", count)
    with other.branch("main").transact("beside") as tx:
        tx.object("plain").upload("changed meanwhile")

    def work() -> None:
        repository.branch("dev").merge_into("main")

    return work


def commit(format: str, repository: Repository, count: int) -> Callable[[], None]:
    """One transaction over so many tables."""
    return lambda: append_to(format, repository, "main", count)


def live(format: str, repository: Repository, count: int) -> Callable[[], None]:
    """An append by the branch's URI: a commit of the repository for each table."""

    def work() -> None:
        for n in range(count):
            append(format, repository.branch("main").store_uri(f"t{n}"))

    return work


CASES = [
    ("transaction over 1 table", commit, 1),
    ("transaction over 2 tables", commit, 2),
    ("transaction over 10 tables", commit, 10),
    ("append by the branch's URI", live, 1),
    ("lost branch, 1 table committed again", lose, 1),
    ("lost branch, 10 tables committed again", lose, 10),
    ("merge that takes 1 table whole", merge, 1),
    ("merge that takes 10 tables whole", merge, 10),
]
"""What is counted: its title, what makes it, and over how many tables."""


def counted(format: str, make: Callable[[str, Repository, int], Callable[[], None]], count: int) -> Requests:
    """The requests of one operation, in a repository of ten tables that it meets for the first time."""
    uri = f"{SCHEME}://requests-{next(_NUMBERS)}"
    first = Repository.create(uri)
    append_to(format, first, "main", MOST)
    first.branch("dev").create("main")
    repository = Repository(uri)
    opened = len(_made)
    work = make(format, repository, count)
    # What a faster writer asks for is not ours.
    others = _made[opened:]
    before = {id(one): len(one.operations) for one in _made}
    work()
    found = Requests(Counter(), Counter())
    for store in _made:
        if store in others:
            continue
        for _, verb, path in store.operations[before.get(id(store), 0) :]:
            share = found.tables if path.startswith("data/") else found.repository
            share["write" if verb in _WRITES else "read"] += 1
    return found


HEAD = "| operation | format | repository: reads | writes | tables: reads | writes |\n|---|---|---|---|---|---|"


def line(title: str, format: str, found: Requests) -> str:
    """A line of the table."""
    return f"| {title} | {format} | " + " | ".join(map(str, found.row())) + " |"


def main(arguments: list[str] | None = None) -> None:
    """Counts, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    options = parser.parse_args(arguments)
    print(HEAD)
    for title, make, count in CASES:
        for format in options.formats:
            print(line(title, format, counted(format, make, count)))


if __name__ == "__main__":
    main()
