"""Merges of tables over stores that fail, and what they ask of one behind a network."""

from __future__ import annotations

import shutil
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

import esker
from esker.exceptions import EskerError
from esker.repo import Repository
from tests.faulty import Faulty
from tests.servers import S3Server
from tests.servers.counting import CountingProxy
from tests.table_branches import FORMATS, Format, Lake, rows_of


@pytest.mark.parametrize("fault", ["crash_before", "crash_after", "lose_reply", "fail", "disk_full"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_restore_that_fails_anywhere_is_there_whole_or_not_at_all(
    faulty: Faulty, tmp_path: Path, format: Format, fault: str
) -> None:
    lake = Lake(tmp_path / "pristine", format)
    lake.write(lake.main, 1, mode="overwrite")
    f = lake.fork()
    lake.write(f, 2)
    lake.write(lake.main, 3)
    pristine, version = Path(lake.repo.uri), lake.first + 1
    shutil.copytree(pristine, tmp_path / "whole")
    Repository(f"fault://{tmp_path / 'whole'}", storage_options={"plan": ""}).ref("f").merge_into(
        "main", strategy="source-wins"
    )
    count = len(faulty.made[-1].operations)
    assert count > 5
    landed = 0
    for number in range(count):
        place = tmp_path / str(number)
        shutil.copytree(pristine, place)
        with suppress(EskerError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            failing = Repository(f"fault://{place}", storage_options={"plan": f"{fault}@{number}"})
            failing.ref("f").merge_into("main", strategy="source-wins")
        found = Repository(place)
        read = lake.read_here(found.ref("main"))
        assert read in [(version, [1, 3]), (version + 1, [1, 2])], f"{fault}@{number}"
        landed += read[0] == version + 1
        assert list(found.fsck(tables=True)) == [], f"{fault}@{number}"
        if read[0] == version:
            found.ref("f").merge_into("main", strategy="source-wins")
            assert lake.read_here(found.ref("main")) == (version + 1, [1, 2])
    # The last request is the one that lets the branch lead there.
    assert landed < count
    assert landed or fault == "crash_before"


def made(uri: str, options: dict[str, str], tables: int) -> None:
    repo = Repository.create(uri, storage_options=options)
    main = repo.branch("main")
    with main.transact("made") as tx:
        for number in range(tables):
            esker.write_dataset(rows_of(1), tx.store_uri(f"t{number}"))
    f = repo.branch("f").create("main")
    with f.transact("more") as tx:
        for number in range(tables):
            esker.write_dataset(rows_of(2), tx.store_uri(f"t{number}"), mode="append")
    main.object("x").upload("x")
    main.commit("x")


def test_what_a_merge_asks_of_an_object_store(s3: S3Server) -> None:
    costs = []
    for tables in (1, 10):
        uri = f"s3://{s3.bucket()}/lake"
        made(uri, s3.storage_options, tables)
        with CountingProxy(s3.server.port) as counting:
            options = {**s3.storage_options, "aws_endpoint": counting.endpoint}
            repo = Repository(uri, storage_options=options)
            counting.take()
            repo.ref("f").merge_into("main")
            costs.append(Counter(request.method for request in counting.take()))
        again = Repository(uri, storage_options=s3.storage_options)
        assert sorted(
            esker.dataset(again.ref("main").store_uri(f"t{tables - 1}"), storage_options=s3.storage_options)
            .to_table()["id"]
            .to_pylist()
        ) == [1, 2]
    # Ten tables cost what one does: no object of a table is asked for. Reads side by side may ask for a footer twice.
    assert costs[0]["PUT"] == costs[1]["PUT"] == 3
    assert abs(costs[0]["GET"] - costs[1]["GET"]) <= 2, costs
    assert sum(costs[0].values()) < 30, costs
