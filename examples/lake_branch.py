"""A repository: new data go to a branch, are checked there, and reach `main` by a merge, tables and files at once.

python examples/lake_branch.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

import esker
from esker.repo import HookEvent, HookRefusedError, Repository


def main(folder: Path) -> None:
    """Two loads: one passes the check, one does not."""
    lake = Repository.create(str(folder / "lake"))

    def check(event: HookEvent) -> None:
        """Called before each merge of this handle, with the content that main would get: what raises stops it."""
        sales = esker.dataset(event.ref.store_uri("tables/sales"))
        wrong = sales.count_rows("amount < 0 OR amount IS NULL")
        if wrong:
            raise HookRefusedError(f"{wrong} of {sales.count_rows()} sales without an amount")

    lake.add_hook("pre-merge", check)
    trunk = lake.branch("main")
    with trunk.transact("an empty table") as tx:
        schema = pa.schema([("id", pa.int64()), ("amount", pa.float64())])
        esker.write_dataset(schema.empty_table(), tx.store_uri("tables/sales"))

    for name, amounts in (("monday", [9.5, 12.0]), ("tuesday", [-1.0, 7.0])):
        load = lake.branch(name).create("main")
        with load.transact(f"sales of {name}", {"job": name}) as tx:
            rows = pa.table({"id": range(len(amounts)), "amount": amounts})
            esker.write_dataset(rows, tx.store_uri("tables/sales"), mode="append")
            tx.object(f"raw/{name}.csv").upload("\n".join(map(str, amounts)))
        print(f"{name}:", [f"{change.type} {change.path.split('/')[0]}/" for change in trunk.diff(name)])
        try:
            load.merge_into("main")
        except HookRefusedError as error:
            print(f"{name} stays out: {error}")

    # Readers of main have never seen what failed. The branch is there to be mended.
    sales = esker.dataset(trunk.store_uri("tables/sales"))
    print(
        f"main has {sales.count_rows()} sales, tuesday's branch "
        f"{esker.dataset(lake.ref('tuesday').store_uri('tables/sales')).count_rows()}"
    )
    lake.tag("week-1").create("main")
    print("log:", [commit.message for commit in lake.ref("week-1").log()])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
