"""Others commit, and clean up, between the look for the newest version and its reading: there is a newer one then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import esker
from esker.exceptions import NotFoundError
from tests.tree_branches import Watch, ids_of, meanwhile, rows_of, three_versions, watched_stores


def _tag(uri: str) -> int:
    dataset = esker.dataset(uri, version=1)
    dataset.tags.create("x", (None, None))
    return dataset.tags.get_version("x")


VERBS: dict[str, Callable[[str], Any]] = {
    "open": lambda uri: ids_of(esker.dataset(uri)),
    "append": lambda uri: ids_of(esker.write_dataset(rows_of(9), uri, mode="append")),
    "tag": _tag,
}


@pytest.fixture
def watched() -> Iterator[dict[str, Watch]]:
    with watched_stores() as found:
        yield found


def _go_on(uri: str) -> None:
    esker.write_dataset(rows_of(3), uri, mode="append")
    esker.dataset(uri).cleanup_old_versions(older_than=timedelta(0), versions=[3])


@pytest.mark.parametrize(("verb", "read"), [("open", "get"), ("append", "get"), ("tag", "head")])
def test_the_version_after_the_one_that_is_gone_is_taken(
    verb: str, read: str, watched: dict[str, Watch], uri: str
) -> None:
    three_versions(uri)
    watched["f"] = meanwhile(lambda: _go_on(uri), verb=read, part=f"{2**64 - 1 - 3:020}.manifest")
    found = VERBS[verb](uri)
    watched.clear()
    assert found == {"open": [0, 1, 2, 3], "append": [0, 1, 2, 3, 9], "tag": 4}[verb]


def test_a_version_that_was_asked_for_is_not_replaced(watched: dict[str, Watch], uri: str) -> None:
    three_versions(uri)
    watched["f"] = meanwhile(lambda: _go_on(uri), verb="get", part=f"{2**64 - 1 - 3:020}.manifest")
    with pytest.raises(NotFoundError, match="no version 3, expected one of 1-2, 4"):
        esker.dataset(uri, version=3)
