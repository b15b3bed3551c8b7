"""Step 2: what happened to each user, as a stream from the Lance table into a Delta table.

PYSPARK_PYTHON=$(which python) python examples/pipeline/feed.py [folder]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import SparkSession

from esker.delta import DeltaTable


def main(folder: Path) -> None:
    """Users in, changes out."""
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # From the version that made the table on; by default it would begin with the users as they are now.
    feed = spark.readStream.format("esker").option("readChangeFeed", "true").option("startingVersion", 1)
    changes = feed.load(str(folder / "users.lance")).where("_change_type <> 'update_preimage'")

    sink = changes.writeStream.format("esker").option("tableFormat", "delta")
    sink = sink.option("checkpointLocation", str(folder / "checkpoints" / "changes")).trigger(availableNow=True)
    sink.start(str(folder / "changes.delta")).awaitTermination()

    kinds = DeltaTable(folder / "changes.delta").to_pyarrow_table()["_change_type"].value_counts().to_pylist()
    print(", ".join(sorted(f"{kind['counts']} {kind['values']}" for kind in kinds)))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pipeline"))
