"""Errors that reach Spark's users advise options of Spark's, not arguments of Python's."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

import esker
from esker._native.table import Transaction
from esker.delta import write_deltalake
from esker.exceptions import CommitConflictError, CorruptFileError, EskerError, InvalidArgumentError
from esker.lance import LanceCommit, LanceLog
from esker.spark.source import EskerSource
from esker.spark.wording import WORDING, in_words_of_spark

ROOT = Path(__file__).parents[2]
NUMBERS = StructType([StructField("i", IntegerType())])


def _source(uri: str, **options: str) -> EskerSource:
    return EskerSource({"path": uri, **options})


def test_each_phrase_is_one_that_a_message_has() -> None:
    sources = [*(ROOT / "python").rglob("*.py"), *(ROOT / "rust").rglob("*.rs")]
    # A message may be cut at the end of a line, in either language.
    texts = [re.sub(r'"\s*\n\s*f?"|\\\n\s*', "", path.read_text()) for path in sources if path.name != "wording.py"]
    for argument, _ in WORDING:
        assert any(argument in text for text in texts), argument


def test_a_race_that_is_lost_again_and_again_says_to_write_again(uri: str) -> None:
    made = esker.write_dataset(pa.table({"i": [1]}), uri)
    log = LanceLog.at(uri)
    change = LanceCommit(log, Transaction.append(made.version, []))
    said = "; nothing of ours is visible, run the write again$"
    with pytest.raises(CommitConflictError, match=said) as caught, in_words_of_spark():
        raise change.exhausted(3, 1.0)
    assert (caught.value.uri, caught.value.retryable) == (log.uri, True), "facts stay"


def test_nulls_that_a_version_loses_name_no_argument_that_spark_lacks(uri: str) -> None:
    texts = StructType([StructField("i", IntegerType())])
    writer = _source(uri, dataStorageVersion="0.1").writer(texts, overwrite=True)
    batch = pa.record_batch({"i": pa.array([1, None], pa.int32())})
    with pytest.raises(EskerError, match="use a newer dataStorageVersion$"):
        writer.write(iter([batch]))


@pytest.mark.parametrize(
    ("options", "overwrite", "said"),
    [
        ({"partitionColumns": "s"}, True, "overwriteSchema=true"),
        ({"partitionColumns": "s"}, False, "overwriteSchema=true"),
    ],
)
def test_delta_tables_advise_options(options: dict[str, str], overwrite: bool, said: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "d")
    write_deltalake(uri, pa.table({"i": pa.array([1], pa.int32()), "s": ["a"]}))
    schema = StructType([*NUMBERS.fields, StructField("s", StringType())])
    with pytest.raises(InvalidArgumentError, match=said) as caught:
        _source(uri, **options).writer(schema, overwrite=overwrite)
    assert not re.search(r"\b[a-z]+_[a-z_]+=", str(caught.value)), "no keyword argument"


def test_other_errors_go_through_as_they_are() -> None:
    error = CorruptFileError("page 3 is cut off, restore the file", path="a.lance")
    with pytest.raises(CorruptFileError) as caught, in_words_of_spark():
        raise error
    assert caught.value is error
    assert str(error) == "page 3 is cut off, restore the file"
    with pytest.raises(KeyError), in_words_of_spark():
        raise KeyError("k")
