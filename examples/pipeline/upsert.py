"""Step 1: files of JSON as a stream, cleaned, and written by key into a Lance table. Run it again when files have come.

PYSPARK_PYTHON=$(which python) python examples/pipeline/upsert.py [folder]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import esker
import esker.spark


def arrive(folder: Path) -> None:
    """Stands for whoever delivers files: a new one at each run, of users of which some were there before."""
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.glob("*.json")))
    users = [
        {"id": n, "email": f" User{n}@Example.com", "visits": number + 1} for n in range(number * 50, number * 50 + 100)
    ]
    # One without a key, which the cleaning drops.
    lines = [json.dumps(user) for user in [*users, {"email": "nobody@example.com"}]]
    new = folder.with_name(f"{number}.json")
    new.write_text("\n".join(lines))
    new.rename(folder / f"{number}.json")


def main(folder: Path) -> None:
    """Files in, users out."""
    arrive(folder / "in")
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    found = spark.readStream.schema("id long, email string, visits int").json(str(folder / "in"))
    clean = found.where("id IS NOT NULL").withColumn("email", F.lower(F.trim("email")))

    # A batch that Spark runs again after a crash is not written again: the checkpoint names the query.
    upsert = esker.spark.upsert_stream(clean, folder / "users.lance", keys=["id"], latest="visits")
    query = (
        upsert.option("checkpointLocation", str(folder / "checkpoints" / "users")).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    users = esker.dataset(folder / "users.lance")
    print(f"{users.count_rows()} users in version {users.version}")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pipeline"))
