"""What Spark pickles carries no credentials where they are told to stay: of either format, for any process."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import types as T

from esker.commit import pickle_storage_options
from esker.spark import EskerSource
from esker.spark.options import ReadOptions, table_address
from esker.spark.reader import SliceScan
from pyspark_esker import DefaultSource
from tests.spark.jobs import batches, staged, wrote
from tests.spark.streams import Batch

SECRET = "t0p-Secret/+=7"
OPTIONS = json.dumps({"aws_secret_access_key": SECRET, "aws_region": "eu-west-1"})
FRAME = T.StructType().add("id", T.LongType()).add("p", T.StringType())
ROWS = [{"id": 1, "p": "a"}]


def _things(uri: str, table_format: str) -> dict[str, Any]:
    """Every object that Spark pickles of a read and of a write."""
    given = {"path": uri, "storageoptions": OPTIONS}
    made: dict[str, Any] = {}
    for name, kind in (("source", EskerSource), ("default source", DefaultSource)):
        source = kind(given)
        schema = source.schema()
        reader = source.reader(schema)
        partitions = reader.partitions()
        assert partitions
        made |= {name: source, f"{name}'s reader": reader, f"{name}'s partitions": partitions}
        for overwrite in (False, True):
            replaced = {"replaceWhere": "id = 1"} if overwrite and table_format == "delta" else {}
            writer = kind({**given, **replaced}).writer(FRAME, overwrite)
            made[f"{name}'s writer, {overwrite}"] = writer
            made[f"{name}'s messages, {overwrite}"] = staged(writer, [batches(FRAME, ROWS)])
    if table_format == "lance":
        made["slices"] = SliceScan(table_address(given), 1, FRAME, ReadOptions.parse(given))
        return made
    feed = EskerSource({**given, "readChangeFeed": "true", "startingVersion": "0"})
    made["feed"] = feed.reader(feed.schema())
    return made


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
@pytest.mark.parametrize("table_format", ["lance", "delta"])
def test_no_pickle_carries_credentials_that_are_to_stay(
    tmp_path: Path, table_format: str, dumps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    properties = {"partitionColumns": "p", "delta.enableChangeDataFeed": "true"} if table_format == "delta" else {}
    wrote(uri, FRAME, ROWS, tableFormat=table_format, **properties)
    things = _things(uri, table_format)
    # They travel unless they are told not to.
    assert SECRET.encode() in dumps(things["source"])
    for name in ("source's reader", "source's writer, False"):
        assert SECRET.encode() in dumps(things[name]), name
    for name, thing in things.items():
        with pickle_storage_options(False):
            assert SECRET.encode() not in dumps(thing), name
        monkeypatch.setenv("ESKER_PICKLE_STORAGE_OPTIONS", "0")
        data = dumps(thing)
        monkeypatch.delenv("ESKER_PICKLE_STORAGE_OPTIONS")
        assert SECRET.encode() not in data, name
        assert SECRET not in repr(thing), name
        pickle.loads(data)


@pytest.mark.parametrize("table_format", ["lance", "delta"])
def test_no_pickle_of_a_stream_carries_credentials_that_are_to_stay(
    tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    wrote(uri, FRAME, ROWS, tableFormat=table_format)
    source = EskerSource({"path": uri, "storageoptions": OPTIONS})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    parts = reader.partitions(start, reader.latestOffset(start))
    batch = Batch(str(tmp_path / "out"), FRAME, "query", 0, tableFormat=table_format, storageoptions=OPTIONS)
    messages = batch.staged([ROWS])
    things = {"reader": reader, "partitions": parts, "writer": batch.writer, "messages": messages}
    assert parts
    assert messages[0].rows is not None
    # What Spark keeps in the checkpoint, for longer than anybody thinks of.
    assert SECRET not in json.dumps(start)
    # Each task of a stream opens the store by its partition alone.
    assert SECRET.encode() not in pickle.dumps(reader)
    assert SECRET.encode() in pickle.dumps(parts)
    monkeypatch.setenv("ESKER_PICKLE_STORAGE_OPTIONS", "0")
    for name, thing in things.items():
        assert SECRET.encode() not in cloudpickle.dumps(thing), name
        assert SECRET not in repr(thing), name


@pytest.mark.parametrize("table_format", ["lance", "delta"])
def test_credentials_travel_once_with_a_read_and_not_with_each_partition(tmp_path: Path, table_format: str) -> None:
    uri = str(tmp_path / "t")
    wrote(uri, FRAME, ROWS, tableFormat=table_format)
    source = EskerSource({"path": uri, "storageoptions": OPTIONS})
    reader = source.reader(source.schema())
    assert SECRET.encode() not in pickle.dumps(reader.partitions())
    # A task gives its files back, which the driver commits with credentials of its own.
    writer = EskerSource({"path": uri, "storageoptions": OPTIONS}).writer(FRAME, False)
    assert SECRET.encode() not in pickle.dumps(staged(writer, [batches(FRAME, ROWS)]))


def test_what_is_left_of_a_pickled_source_still_reads(tmp_path: Path) -> None:
    for table_format in ("lance", "delta"):
        uri = str(tmp_path / table_format)
        wrote(uri, FRAME, ROWS, tableFormat=table_format)
        source = EskerSource({"path": uri, "storage_options": OPTIONS})
        schema = source.schema()
        with pickle_storage_options(False):
            woken = pickle.loads(pickle.dumps(source))
            reader = pickle.loads(pickle.dumps(woken.reader(schema)))
        (part,) = woken.reader(schema).partitions()
        assert [row for batch in reader.read(part) for row in batch.to_pylist()] == ROWS
        assert json.loads(woken.options["storage_options"]) == {"aws_region": "eu-west-1"}


def test_options_that_are_no_json_are_not_carried_either() -> None:
    with pickle_storage_options(False):
        assert SECRET.encode() not in pickle.dumps(
            EskerSource({"path": "t", "storage_options": f'{{"token": "{SECRET}"'})
        )
