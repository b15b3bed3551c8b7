"""Errors that reach Spark's users advise options of Spark's, not arguments of Python's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

import esker
from esker._native.table import Transaction
from esker.delta import write_deltalake
from esker.delta.exceptions import AppendOnlyError
from esker.exceptions import CommitConflictError, CorruptFileError, EskerError, InvalidArgumentError, NotFoundError
from esker.lance import LanceCommit, LanceLog
from esker.repo import ExpiredError, TableConflictError
from esker.spark.options import TableAddress
from esker.spark.source import EskerSource
from esker.spark.streaming.upsert import _Upsert
from esker.spark.wording import WORDING, as_raised_by_esker, in_words_of_spark

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


def test_an_upsert_that_loses_a_race_again_and_again_names_no_argument_that_it_lacks(uri: str) -> None:
    made = esker.write_dataset(pa.table({"i": pa.array([1], pa.int32())}), uri)

    class LosingFrame:
        schema, columns = NUMBERS, NUMBERS.names

        def toDF(self, *names: str) -> LosingFrame:
            return self

        def toArrow(self) -> pa.Table:
            raise LanceCommit(LanceLog.at(uri), Transaction.append(made.version, [])).exhausted(3, 1.0)

    upsert = _Upsert(TableAddress(uri, {}), ["i"], None, {}, "q")
    with pytest.raises(CommitConflictError, match="; nothing of ours is visible, run the write again$"):
        upsert(LosingFrame(), 0)  # type: ignore[arg-type]


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


READER_GONE = """
import os, socket, sys, traceback
from esker.spark import wording

wording.is_worker = lambda: sys.argv[1] == "worker"

def rows():
    with wording.in_words_of_spark():
        while True:
            yield b"x" * 50_000

def work(out):
    # As pyspark.worker does it: the error is told through the pipe, as far as it is there, and the process ends.
    try:
        for row in rows():
            out.write(row)
    except BaseException as error:
        try:
            out.write("".join(traceback.format_exception(error)).encode())
        except OSError:
            pass
        sys.exit(-1)

ours, theirs = socket.socketpair()
out = os.fdopen(os.dup(ours.fileno()), "wb", 65536)
theirs.close()
try:
    work(out)
except SystemExit:
    pass
finally:
    try:
        out.flush()
    except OSError:
        print(traceback.format_exc(), file=sys.stderr)
os._exit(0)
"""


@pytest.mark.parametrize(("where", "told"), [("worker", False), ("elsewhere", True)])
def test_a_worker_whose_reader_has_gone_ends_without_a_stack(where: str, told: bool) -> None:
    done = subprocess.run([sys.executable, "-c", READER_GONE, where], capture_output=True, text=True, check=False)
    assert ("BrokenPipeError" in done.stderr) == told, done.stderr


def test_what_a_worker_raises_is_esker_s_again_for_the_user() -> None:
    told = "[PYTHON_EXCEPTION] thrown: esker.exceptions.NotFoundError: no table at t; check the path\n SQLSTATE: 38000"
    with pytest.raises(NotFoundError, match="^no table at t; check the path$"), as_raised_by_esker():
        raise RuntimeError(told)
    for kind in (ExpiredError, TableConflictError, AppendOnlyError, CommitConflictError):
        told = f"Job aborted: {kind.__module__}.{kind.__qualname__}: it says\nand a stack"
        with pytest.raises(EskerError, match="^it says$") as raised, as_raised_by_esker():
            raise RuntimeError(told)
        assert type(raised.value) is kind
    strangers = ("esker.exceptions.Strange: x", "esker.exceptions.Any: x", "esker.nowhere.Error: x")
    for other in (*strangers, "esker.__main__.Error: x", "nothing of ours"):
        with pytest.raises(RuntimeError, match=other), as_raised_by_esker():
            raise RuntimeError(other)


def test_values_that_are_too_large_for_a_batch_name_the_option_that_helps() -> None:
    said = "the values of one batch hold 9 bytes; read fewer rows at a time or use a large_ type"
    told = "read fewer rows at a time .the option rowsPerPartition. or use"
    with pytest.raises(InvalidArgumentError, match=told), in_words_of_spark():
        raise InvalidArgumentError(said)
