"""Streams of Lance tables over a restore: columns get the names of the restored version, and their values stay."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import SchemaMismatchError
from tests.spark.streams import Query
from tests.spark.test_stream_columns import EXCHANGE, _append, _plain, _rename

Row = dict[str, Any]
EXCHANGED = {"a": "b", "b": "a"}


def _unread(uri: str, **options: object) -> list[Row]:
    """All that was ever appended, as a query that starts now reads it."""
    return _plain(Query(uri, startingVersion=1, skipChangeCommits="true", **options).rows())


def _restore(uri: str, version: int) -> int:
    """Restores a version, and says which one that makes."""
    lance.dataset(uri, version=version).restore()
    return int(lance.dataset(uri).version)


def _rows(uri: str, *numbers: int) -> list[Row]:
    """Rows with these ids as the table has its columns now: which is which, the ids of its fields tell."""
    names = {field.id(): field.name() for field in lance.dataset(uri).lance_schema.fields()}
    return [{"id": n, names[1]: f"A{n}", names[2]: f"B{n}"} for n in numbers]


@pytest.mark.parametrize("names", [[("a", "x")], EXCHANGE], ids=["renamed", "exchanged"])
def test_new_names_that_a_restore_undoes_leave_the_values_where_they_were(
    names: list[tuple[str, str]], tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 1, "create")
    _rename(uri, names)
    _append(uri, 1, 2, **(EXCHANGED if names == EXCHANGE else {"a": "x"}))
    last = lance.dataset(uri).version
    restored = _restore(uri, 1)
    assert _unread(uri) == _rows(uri, 0, 1)
    assert _unread(uri, filter="a = 'A1'") == _rows(uri, 1)
    # So do restores of restores, and of what they undid.
    _restore(uri, last)
    assert _unread(uri) == _rows(uri, 0, 1)
    _append(uri, 2, 3, **(EXCHANGED if names == EXCHANGE else {"a": "x"}))
    _restore(uri, restored)
    _append(uri, 3, 4)
    assert _unread(uri) == _rows(uri, 0, 1, 2, 3)


@pytest.mark.parametrize("restored", [1, 3])
def test_a_column_that_was_dropped_until_a_restore_keeps_its_values_under_all_its_names(
    restored: int, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 1, "create")
    _rename(uri, [("b", "y")])
    _append(uri, 1, 2, b="y")
    lance.dataset(uri).drop_columns(["y"])
    lance.write_dataset(pa.table({"id": [2], "a": ["A2"]}), uri, mode="append")
    _restore(uri, restored)
    # What was appended while it was gone has no value.
    name = "b" if restored == 1 else "y"
    assert _unread(uri) == [*_rows(uri, 0, 1), {"id": 2, "a": "A2", name: None}]
    assert _unread(uri, filter=f"{name} = 'B1'") == _rows(uri, 1)


def test_a_column_that_one_restore_undoes_and_the_next_brings_back_keeps_its_values(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 1, "create")
    lance.dataset(uri).add_columns({"x": "concat('X', cast(id as string))"})
    lance.dataset(uri).alter_columns({"path": "x", "name": "z"})
    lance.write_dataset(pa.table({"id": [1], "a": ["A1"], "b": ["B1"], "z": ["X1"]}), uri, mode="append")
    _restore(uri, 1)
    _append(uri, 2, 3)
    _restore(uri, 4)
    expected = [{**row, "z": z} for row, z in zip(_rows(uri, 0, 1, 2), (None, "X1", None), strict=True)]
    assert _unread(uri) == expected


def test_fields_within_a_column_that_a_restore_renames_keep_their_values(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"id": [0], "s": [{"p": 1, "q": [{"v": 2, "w": 3}]}]}), uri)
    _rename(uri, [("s.p", "x"), ("s.q.item.v", "x"), ("s.q.item.w", "v"), ("s.q.item.x", "w")])
    lance.write_dataset(pa.table({"id": [1], "s": [{"x": 4, "q": [{"w": 5, "v": 6}]}]}), uri, mode="append")
    _restore(uri, 1)
    expected = [{"id": n, "s": {"p": 1 + 3 * n, "q": [{"v": 2 + 3 * n, "w": 3 + 3 * n}]}} for n in range(2)]
    assert _unread(uri) == expected
    assert _unread(uri, filter="s.p = 4") == expected[1:]


@pytest.mark.parametrize("names", [[("a", "x")], EXCHANGE], ids=["renamed", "exchanged"])
def test_a_restore_that_renames_under_a_running_query_is_an_error(names: list[tuple[str, str]], tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 1, "create")
    _rename(uri, names)
    query = Query(uri, skipChangeCommits="true")
    query.rows()
    _restore(uri, 1)
    _append(uri, 1, 2)
    for _ in range(2):
        with pytest.raises(SchemaMismatchError, match="with which the stream was loaded"):
            query.rows()
    query.start()
    assert _plain(query.rows()) == _rows(uri, 1)


def test_a_restore_of_the_same_names_is_nothing_to_a_running_query(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 1, "create")
    _append(uri, 1, 2)
    query = Query(uri, skipChangeCommits="true")
    query.rows()
    _restore(uri, 1)
    _append(uri, 2, 3)
    assert _plain(query.rows()) == _rows(uri, 2)


def test_a_restored_version_that_was_cleaned_up_leaves_names_alone(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    _append(uri, 0, 1, "create")
    _rename(uri, EXCHANGE)
    _append(uri, 1, 2, **EXCHANGED)
    query = Query(uri, startingVersion=5, skipChangeCommits="true", maxVersionsPerTrigger=1)
    _restore(uri, 1)
    for version in (4, 5):
        lance.dataset(uri).tags.create(f"v{version}", version)
    lance.dataset(uri).cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    assert [version["version"] for version in esker.dataset(uri).versions()] == [4, 5, 6]
    assert _plain(query.rows()) == [{"id": 1, "a": "B1", "b": "A1"}]


@pytest.mark.parametrize("seed", range(8))
def test_columns_are_followed_over_renames_and_restores_in_any_order(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    uri = str(tmp_path / "t")
    _append(uri, 0, 1, "create")
    count = 1
    for _ in range(rng.randrange(6, 14)):
        turn = rng.choice(["append", "rename", "exchange", "restore"])
        names = {field.id(): field.name() for field in lance.dataset(uri).lance_schema.fields()}
        if turn == "append":
            _append(uri, count, count + 1, a=names[1], b=names[2])
            count += 1
        elif turn == "rename":
            unused = [name for name in "abxyz" if name not in names.values()]
            _rename(uri, [(names[rng.choice((1, 2))], rng.choice(unused))])
        elif turn == "exchange":
            # A restore may bring back the name between.
            free = f"other {lance.dataset(uri).version}"
            _rename(uri, [(names[1], free), (names[2], names[1]), (free, names[2])])
        else:
            _restore(uri, rng.randrange(1, lance.dataset(uri).version + 1))
    assert _unread(uri) == _rows(uri, *range(count))
