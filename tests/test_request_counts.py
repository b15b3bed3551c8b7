"""Requests to an S3 server: never more than pylance sends for the same work, and no more than values need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import esker
from benches import object_stores
from tests.servers import Azurite, S3Server
from tests.servers.azurite import ACCOUNT
from tests.servers.counting import CountingProxy, Request

FRAGMENTS = 4
ROWS = 40_000


@pytest.fixture(scope="module")
def proxy(s3: S3Server) -> Iterator[CountingProxy]:
    with CountingProxy(s3.server.port) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def subjects(s3: S3Server, proxy: CountingProxy) -> list[object_stores.Subject]:
    options = {**s3.storage_options, "aws_endpoint": proxy.endpoint}
    root = f"s3://{s3.bucket()}"
    return [object_stores.Subject(name, root, options) for name in object_stores.LIBRARIES]


def _made(subjects: list[object_stores.Subject], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_stores, "ROWS", ROWS)
    for subject in subjects:
        object_stores.make(subject, 3)


def test_no_operation_costs_more_requests_than_pylances(
    subjects: list[object_stores.Subject], proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    _made(subjects, monkeypatch)
    monkeypatch.setattr(object_stores, "TAKEN", list(range(0, ROWS, ROWS // 100)))
    more = {}
    # With four fragments, and with as many small ones besides as the appends of a day leave behind.
    appends = [case for case in object_stores.CASES if case.title == "open, append 100 rows"] * 12
    for case in [*object_stores.CASES, *appends, *object_stores.CASES]:
        found = {subject.name: object_stores.counted(case, subject, proxy) for subject in subjects}
        assert all(request.status < 500 for requests in found.values() for request in requests)
        if len(found["esker"]) > len(found["pylance"]):
            more[case.title] = {name: object_stores.kinds(requests) for name, requests in found.items()}
    assert more == {}


def _kinds(requests: list[Request]) -> dict[str, int]:
    return dict(Counter(request.kind for request in requests))


def test_each_operation_asks_for_what_it_needs_and_nothing_else(s3: S3Server, proxy: CountingProxy) -> None:
    options = {**s3.storage_options, "aws_endpoint": proxy.endpoint}
    uri = f"s3://{s3.bucket()}/t"
    table = object_stores.numbers(0, ROWS)
    # Pages so small that they are kept whole would not be read again.
    made = esker.write_dataset(
        table, uri, storage_options=options, max_rows_per_file=ROWS // FRAGMENTS, compression="fast"
    )
    proxy.take()
    # Whoever holds the table reads nothing of it again.
    esker.write_dataset(table.slice(0, 10), made, mode="append", storage_options=options)
    assert _kinds(proxy.take()) == {
        "LIST manifest": 1,
        "PUT data file": 1,
        "PUT transaction": 1,
        "PUT manifest": 1,
    }
    dataset = esker.dataset(uri, storage_options=options)
    proxy.take()
    rows = list(range(0, ROWS, ROWS // 100))
    first = dataset.take(rows, columns=["v"])
    # Of each file its end, and once that is known the values, which lie near each other.
    assert _kinds(proxy.take())["GET data file"] <= 3 * FRAGMENTS
    assert dataset.take(rows, columns=["v"]) == first
    assert _kinds(proxy.take()) == {"GET data file": FRAGMENTS}
    assert dataset.take([5], columns=["v"]).num_rows == 1
    assert _kinds(proxy.take()) == {"GET data file": 1}


def test_azure_is_not_asked_for_sizes_that_the_table_knows(azure: Azurite) -> None:
    with CountingProxy(azure.server.port) as proxy:
        options = {**azure.storage_options, "azure_endpoint": f"{proxy.endpoint}/{ACCOUNT}"}
        uri = f"az://{azure.container()}/t"
        esker.write_dataset(object_stores.numbers(0, ROWS), uri, storage_options=options, max_rows_per_file=ROWS // 4)
        dataset = esker.dataset(uri, storage_options=options)
        proxy.take()
        assert dataset.to_table().num_rows == ROWS
        assert Counter(request.method for request in proxy.take())["HEAD"] == 0


def test_chunks_of_a_wide_table_read_its_small_pages_once(s3: S3Server) -> None:
    rng = np.random.default_rng(1)
    columns, rows = 1_500, 3_000
    table = pa.table({f"c{number}": rng.integers(0, 1 << 60, rows) for number in range(columns)})
    # Larger than a chunk, and each page is smaller than what is worth a request.
    uri = f"s3://{s3.bucket()}/wide"
    esker.write_dataset(table, uri, storage_options=s3.storage_options)
    dataset = esker.dataset(uri, storage_options=s3.storage_options)
    dataset.io_stats_incremental()
    batches = list(dataset.to_batches())
    assert len(batches) > 1
    assert pa.Table.from_batches(batches).equals(table)
    assert dataset.io_stats_incremental().read_bytes < 1.1 * table.nbytes
