"""A Spark pipeline: a table is read, computed batch by batch in Arrow, and written as another one, in one commit.

PYSPARK_PYTHON=$(which python) python examples/spark_pipeline.py [folder]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import SparkSession

import esker
import esker.spark


def embed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stands for a model: runs in Spark's tasks, once a batch and not once a row."""
    for batch in batches:
        length = pc.cast(pc.utf8_length(batch["text"]), pa.float32())
        vectors = pa.FixedSizeListArray.from_arrays(pc.fill_null(pa.concat_arrays([length, length]), 0), 2)
        yield pa.record_batch([batch["id"], vectors.cast(pa.list_(pa.float32()))], ["id", "embedding"])


def main(folder: Path) -> None:
    """Texts in, embeddings out."""
    texts, embeddings = str(folder / "texts.lance"), str(folder / "embeddings.lance")
    esker.write_dataset(
        pa.table({"id": range(10_000), "text": ["word " * (n % 7) for n in range(10_000)]}),
        texts,
        max_rows_per_file=2500,
    )
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    # Columns and filter are said here: Spark would read everything for a `where` of its own.
    some = esker.spark.read(spark, texts, columns=["id", "text"], filter="id < 5000")
    computed = some.mapInArrow(embed, "id bigint, embedding array<float>")
    writer = computed.write.format("esker").mode("append").option("vectors", "embedding=2")
    writer.save(embeddings)

    written = esker.dataset(embeddings)
    print(
        f"{written.count_rows()} embeddings in version {written.version}, type {written.schema.field('embedding').type}"
    )

    # The same table as SQL sees it.
    spark.read.format("esker").load(embeddings).createOrReplaceTempView("embeddings")
    longest = spark.sql("SELECT count(*) FROM embeddings WHERE embedding[0] = 30").first()
    print(f"longest texts: {longest[0] if longest else None}")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
