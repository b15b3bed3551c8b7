"""The place of a branch, `tree/{branch}` in the folder of its table: nothing else is made there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import esker
from esker.delta import DeltaTable, convert_to_deltalake, write_deltalake
from esker.exceptions import AlreadyExistsError, NotFoundError
from tests.tree_branches import files_below, ids_of, rows_of, three_versions


def _convert(uri: str) -> None:
    Path(uri).mkdir(parents=True)
    pq.write_table(rows_of(5), f"{uri}/a.parquet")
    convert_to_deltalake(uri)


MAKERS: dict[str, Callable[[str], object]] = {
    "write": lambda uri: esker.write_dataset(rows_of(5), uri),
    "shallow clone": lambda uri: esker.write_dataset(rows_of(5), "memory://branch-places-a").shallow_clone(uri, 1),
    "deep clone": lambda uri: esker.write_dataset(rows_of(5), "memory://branch-places-b").deep_clone(uri, 1),
    "Delta write": lambda uri: write_deltalake(uri, rows_of(5)),
    "Delta table": lambda uri: DeltaTable.create(uri, rows_of(5).schema),
    "conversion": _convert,
}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    for name in "ab":
        esker.LanceDataset.drop(f"memory://branch-places-{name}", ignore_not_found=True)


@pytest.mark.parametrize("is_relative", [False, True])
@pytest.mark.parametrize("name", ["feat", "team/feat"])
@pytest.mark.parametrize("maker", MAKERS)
def test_no_table_of_any_kind_is_made_in_the_place_of_a_branch(
    maker: str, name: str, is_relative: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = three_versions(str(tmp_path / "t"))
    monkeypatch.chdir(table)
    before = files_below(table)
    place = f"tree/{name}" if is_relative else f"{table}/tree/{name}"
    with pytest.raises(NotFoundError, match=f"expected the branch {name} of the table at {table}, found none"):
        MAKERS[maker](place)
    assert {path for path in files_below(table) if not path.endswith(".parquet")} == before
    assert ids_of(esker.dataset(table).create_branch(name, 1)) == [0]


@pytest.mark.parametrize("maker", MAKERS)
def test_a_folder_named_tree_below_no_table_is_one_like_others(maker: str, tmp_path: Path) -> None:
    MAKERS[maker](str(tmp_path / "tree" / "t"))
    assert files_below(str(tmp_path / "tree" / "t"))


def test_a_clone_to_a_branch_that_is_there_finds_it(tmp_path: Path) -> None:
    table = esker.dataset(three_versions(str(tmp_path / "t")))
    branch = table.create_branch("feat", 1)
    with pytest.raises(AlreadyExistsError, match="exists already"):
        table.shallow_clone(branch.uri, 2)
