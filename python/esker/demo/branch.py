"""January comes onto a branch of a repository, is checked there, and is merged."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.demo.pipeline import FORMAT
from esker.repo import HookEvent, HookRefusedError, Repository

FLIGHTS, AIRLINES = "flights", "by_airline"


@dataclass(frozen=True)
class Published:
    """What happened on the way from the branch to main."""

    uri: str
    refused: str
    rows: int
    rows_through_spark: int
    flights_by_airline: int
    findings: list[str]
    commits: list[str]


def publish_january(spark: SparkSession, flights: pa.Table, folder: Path) -> Published:
    """Writes January's flights and a summary of them on a branch, checks them by a hook, and merges them into main.

    Args:
        spark: The session that reads main at the end.
        flights: All flights; those of January are taken.
        folder: Of the repository; what an earlier run left there is removed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    january = flights.filter(pc.equal(flights["month"], 1))
    lake = Repository.create(str(folder.resolve()), committer="demo")
    branch = lake.branch("january").create("main")
    with branch.transact("January: flights, and what each airline flew") as tx:
        esker.write_dataset(january, tx.store_uri(FLIGHTS))
        write_deltalake(tx.store_uri(AIRLINES), january.group_by("carrier").aggregate([([], "count_all")]))
    # By the branch's own URI, each commit of a table is a commit of the branch.
    wrong = january.slice(0, 1)
    column = wrong.column_names.index("distance")
    wrong = wrong.set_column(column, wrong.schema.field(column), [pa.array([-1], wrong.schema.field(column).type)])
    esker.write_dataset(wrong, branch.store_uri(FLIGHTS), mode="append")

    lake.add_hook("pre-merge", audit)
    refused = ""
    try:
        branch.merge_into("main")
    except HookRefusedError as reason:
        refused = str(reason)
    esker.dataset(branch.store_uri(FLIGHTS)).delete("distance < 0")
    branch.merge_into("main")

    main = lake.branch("main")
    airlines = DeltaTable(main.store_uri(AIRLINES)).to_pyarrow_table()
    return Published(
        uri=main.store_uri(FLIGHTS),
        refused=refused,
        rows=esker.dataset(main.store_uri(FLIGHTS)).count_rows(),
        rows_through_spark=spark.read.format(FORMAT).load(main.store_uri(FLIGHTS)).count(),
        flights_by_airline=pc.sum(airlines["count_all"]).as_py(),
        findings=list(lake.fsck(tables=True)),
        commits=[commit.message for commit in main.log()],
    )


def audit(event: HookEvent) -> None:
    """Refuses a merge that would bring flights of a negative length."""
    wrong = esker.dataset(event.ref.store_uri(FLIGHTS)).count_rows("distance < 0")
    if wrong:
        raise HookRefusedError(f"{wrong} flight has a negative distance")
