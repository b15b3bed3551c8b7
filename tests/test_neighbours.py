"""Arrow's neighbours: DuckDB and polars push columns and filters down; streams go both ways."""

from __future__ import annotations

from typing import Any

import duckdb
import lance
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import esker
from tests.samples import people, same


@pytest.fixture
def dataset(uri: str) -> esker.LanceDataset:
    return esker.write_dataset(people(20_000), uri, max_rows_per_file=6000)


class Recorder(esker.LanceDataset):
    """A dataset that remembers what it was asked to scan."""

    asked: list[dict[str, Any]]

    def scanner(self, *args: Any, **options: Any) -> esker.LanceScanner:
        self.__dict__.setdefault("asked", []).append(options)
        return super().scanner(*args, **options)


def test_a_dataset_is_a_pyarrow_dataset(dataset: esker.LanceDataset) -> None:
    assert isinstance(dataset, pa.dataset.Dataset)
    assert isinstance(dataset.scanner(), pa.dataset.Scanner)
    assert all(isinstance(fragment, pa.dataset.Fragment) for fragment in dataset.get_fragments())


def test_duckdb_queries_a_dataset_and_pushes_columns_and_filters(dataset: esker.LanceDataset) -> None:
    recorder = Recorder(dataset.uri)
    connection = duckdb.connect()
    connection.register("people", recorder)
    found = connection.sql("select count(*), sum(id) from people where id >= 100 and id < 200").fetchall()
    assert found == [(100, sum(range(100, 200)))]
    options = [asked for asked in recorder.asked if asked.get("columns")]
    assert options
    assert all(asked["columns"] == ["id"] for asked in options)
    assert any(asked.get("filter") is not None for asked in options)


@pytest.mark.parametrize(
    "query",
    [
        "select name, count(*) n from people where score > 100 group by name order by n desc, name limit 5",
        "select id, place.city from people where place.zip = 7 order by id limit 10",
        "select count(*) from people where name is null",
        "select count(*) from people where name in ('name-1', 'name-2')",
        "select max(vector[1]) from people where id between 10 and 20",
        "select a.id from people a join people b on a.id = b.id + 1 where a.id < 5 order by 1",
    ],
)
def test_duckdb_answers_as_over_pylance(query: str, dataset: esker.LanceDataset) -> None:
    connection = duckdb.connect()
    answers = []
    for module in (esker, lance):
        # The peer cannot take a filter on a nested field: what it answers is computed from all its rows.
        found = module.dataset(dataset.uri)
        connection.register("people", found if module is esker or "zip" not in query else found.to_table())
        answers.append(connection.sql(query).fetchall())
    assert answers[0] == answers[1]


def test_polars_scans_a_dataset_and_pushes_columns_and_filters(dataset: esker.LanceDataset) -> None:
    recorder = Recorder(dataset.uri)
    frame = pl.scan_pyarrow_dataset(recorder).filter(pl.col("id") < 50).select("id", "name")
    assert frame.collect().height == 50
    options = recorder.asked[-1]
    assert set(options["columns"]) == {"id", "name"}
    assert options["filter"] is not None
    peer = pl.scan_pyarrow_dataset(lance.dataset(dataset.uri)).filter(pl.col("score") > 10).select("id").collect()
    ours = pl.scan_pyarrow_dataset(dataset).filter(pl.col("score") > 10).select("id").collect()
    assert ours.equals(peer)


def test_polars_frames_are_made_from_the_stream_interface(dataset: esker.LanceDataset) -> None:
    assert pl.DataFrame(dataset).height == 20_000


def test_duckdb_and_polars_results_are_written(dataset: esker.LanceDataset, tmp_path: Any) -> None:
    relation = duckdb.sql("select id, name from dataset where id < 100 order by id")
    written = esker.write_dataset(relation, str(tmp_path / "duck"))
    same(dataset.to_table(columns=["id", "name"], limit=100), written.to_table())
    lazy = pl.scan_pyarrow_dataset(dataset).filter(pl.col("id") < 7).select("id")
    assert esker.write_dataset(lazy, str(tmp_path / "polars")).to_table()["id"].to_pylist() == list(range(7))


@pytest.mark.parametrize("name", ["join", "replace_schema"])
def test_what_pyarrow_would_do_to_its_own_datasets_is_refused(name: str, dataset: esker.LanceDataset) -> None:
    # The methods of the base class would work on a C++ object that a table of ours does not have.
    with pytest.raises(NotImplementedError, match=name):
        getattr(dataset, name)("id")
