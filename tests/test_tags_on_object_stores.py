"""Tags and branches on object stores: in turns with pylance, and at most its requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import RefConflictError
from tests.servers import Azurite, S3Server
from tests.servers.counting import CountingProxy


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def _ids(dataset: Any) -> list[int]:
    found: list[int] = dataset.to_table()["id"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("kind", ["s3", "azure"])
def test_branches_in_turns_on_an_object_store(request: pytest.FixtureRequest, kind: str) -> None:
    server: Any = request.getfixturevalue(kind)
    root = f"s3://{server.bucket()}" if isinstance(server, S3Server) else f"az://{server.container()}"
    assert isinstance(server, S3Server | Azurite)
    uri, options = f"{root}/deep/er/t.lance", server.storage_options
    esker.write_dataset(_rows(0), uri, storage_options=options)
    dataset = esker.write_dataset(_rows(1), uri, mode="append", storage_options=options)
    peer = lance.dataset(uri, storage_options=options)
    dataset.tags.create("ours", 1)
    peer.tags.create("theirs", 2)
    assert dataset.tags.list() == peer.tags.list()
    ours = dataset.create_branch("team/ours", "ours")
    theirs = peer.create_branch("team/theirs", 2)
    assert dataset.branches.list() == peer.branches.list()
    lance.write_dataset(_rows(10), ours.uri, mode="append", storage_options=options)
    esker.write_dataset(_rows(11), theirs.uri, mode="append", storage_options=options)
    opened = esker.dataset(uri, ("team/ours", None), storage_options=options)
    opened.delete("id = 0")
    assert _ids(esker.dataset(ours.uri, storage_options=options)) == [10]
    assert _ids(lance.dataset(ours.uri, storage_options=options)) == [10]
    assert _ids(esker.dataset(uri, ("team/theirs", None), storage_options=options)) == [0, 1, 11]
    with pytest.raises(RefConflictError):
        dataset.create_branch("team/theirs")
    for name in ("team/ours", "team/theirs"):
        dataset.branches.delete(name)
    assert peer.branches.list() == {}
    assert not [path for path in dataset.all_files().read_all()["path"].to_pylist() if path.startswith("tree/")]
    esker.LanceDataset.drop(uri, options)
    assert not lance.LanceDataset.drop(uri, options, ignore_not_found=True)


DOES: dict[str, Callable[[Any, str, str, Any], object]] = {
    "create a tag": lambda dataset, uri, name, options: dataset.tags.create(name, 1),
    "create a tag of this version": lambda dataset, uri, name, options: dataset.tags.create(f"{name}-here"),
    "list tags": lambda dataset, uri, name, options: dataset.tags.list(),
    "ask a tag": lambda dataset, uri, name, options: dataset.tags.get_version(name),
    "update a tag": lambda dataset, uri, name, options: dataset.tags.update(name, 2),
    "check a tag out": lambda dataset, uri, name, options: dataset.checkout_version(name),
    "open a tag": lambda dataset, uri, name, options: (esker if name == "esker" else lance).dataset(
        uri, name, storage_options=options
    ),
    "delete a tag": lambda dataset, uri, name, options: dataset.tags.delete(name),
    "create a branch": lambda dataset, uri, name, options: dataset.create_branch(name, 2),
    "list branches": lambda dataset, uri, name, options: dataset.branches.list(),
    "check a branch out": lambda dataset, uri, name, options: dataset.checkout_version((name, None)),
    "delete a branch": lambda dataset, uri, name, options: dataset.branches.delete(name),
}


def test_at_most_the_requests_of_pylance(s3: S3Server) -> None:
    counts: dict[str, dict[str, list[str]]] = {}
    with CountingProxy(s3.server.port) as proxy:
        options = {**s3.storage_options, "aws_endpoint": proxy.endpoint}
        for library in (esker, lance):
            uri = f"s3://{s3.bucket()}/t.lance"
            for number in range(3):
                mode = "append" if number else "create"
                esker.write_dataset(_rows(number), uri, mode=mode, storage_options=s3.storage_options)
            dataset = library.dataset(uri, storage_options=options)
            proxy.take()
            for verb, do in DOES.items():
                do(dataset, uri, library.__name__, options)
                counts.setdefault(verb, {})[library.__name__] = [request.kind for request in proxy.take()]
    assert {verb: found for verb, found in counts.items() if len(found["esker"]) > len(found["lance"])} == {}
