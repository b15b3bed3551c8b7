"""A Delta table of events: appended every hour, read by DuckDB and pandas, corrected by day.

python examples/delta_events.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pyarrow as pa

from esker.delta import DeltaTable, write_deltalake


def hour(day: str, number: int) -> pa.Table:
    """The events of an hour."""
    kinds = ["view", "view", "buy"]
    return pa.table({"day": [day] * 3, "hour": [number] * 3, "kind": kinds, "amount": [0.0, 0.0, 9.5 + number]})


def main(folder: Path) -> None:
    """A day and a half of events."""
    uri = folder / "events"
    for number in range(36):
        day = f"2024-03-0{1 + number // 24}"
        # The job's name and the number of its run: one that is started again writes nothing twice.
        write_deltalake(
            uri,
            hour(day, number % 24),
            mode="append",
            partition_by=["day"],
            txn_app_id="events",
            txn_version=number,
        )
    events = DeltaTable(uri)
    write_deltalake(events, hour("2024-03-01", 0), mode="append", txn_app_id="events", txn_version=0)
    print(f"version {events.version()}: {events.count()} events")

    # DuckDB takes the table by the variable's name.
    for row in duckdb.sql(
        "select day, count(*), sum(amount) from events where kind = 'buy' group by day order by day"
    ).fetchall():
        print(*row)

    # pandas gets the columns and partitions that it asks for; files of other days are not opened.
    frame = events.to_pandas(columns=["hour", "amount"], filters=[("day", "=", "2024-03-02"), ("kind", "=", "buy")])
    print(f"pandas: {len(frame)} sales on the second day, mean {frame['amount'].mean():.2f}")
    second = events.file_uris(file_pruning_predicate="day = '2024-03-02'")
    print(f"files of that day: {len(second)} of {len(events.file_uris())}")

    # The second day was wrong: it is replaced as a whole, in one commit, and the old one stays readable.
    before = events.version()
    write_deltalake(events, hour("2024-03-02", 0), mode="overwrite", predicate="day = '2024-03-02'")
    print(f"after the correction: {events.count()} events; before: {DeltaTable(uri, version=before).count()}")
    print("history:", [entry["operation"] for entry in events.history(2)])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
