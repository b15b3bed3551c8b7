"""The storage options of a dataset, as pylance tells them."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker

OPTIONS = {"allow_http": "true", "secret_access_key": "hush"}


def _given(options: dict[str, str] | None) -> dict[str, str] | None:
    # pylance adds its own name to what it was given.
    return None if options is None else {key: value for key, value in options.items() if key != "user_agent"}


@pytest.mark.parametrize("options", [None, OPTIONS])
def test_the_getters_answer_as_those_of_pylance(tmp_path: Path, options: dict[str, str] | None) -> None:
    uri = str(tmp_path / "t")
    esker.write_dataset(pa.table({"a": [1]}), uri)
    ours, theirs = esker.dataset(uri, storage_options=options), lance.dataset(uri, storage_options=options)
    assert ours.initial_storage_options == _given(theirs.initial_storage_options) == options
    assert ours.latest_storage_options() == _given(theirs.latest_storage_options()) == options
    if options is None:
        assert ours.storage_options_accessor is theirs.storage_options_accessor is None
        return
    mine, other = ours.storage_options_accessor, theirs.storage_options_accessor
    assert mine is not None
    for name in ("get_storage_options", "initial_storage_options"):
        assert getattr(mine, name)() == _given(getattr(other, name)()) == options
    for name in ("has_provider", "refresh_offset_secs"):
        assert getattr(mine, name)() == getattr(other, name)()
    assert set(dir(other)) <= set(dir(mine))


def test_equal_options_are_equal_accessors_that_tell_no_secret(tmp_path: Path) -> None:
    dataset = esker.write_dataset(pa.table({"a": [1]}), str(tmp_path / "t"), storage_options=OPTIONS)
    mine = dataset.storage_options_accessor
    assert mine is not None
    again = mine.with_static_options(OPTIONS)
    assert (mine, hash(mine), mine.accessor_id()) == (again, hash(again), again.accessor_id())
    assert mine != mine.with_static_options({"allow_http": "false"})
    assert "hush" not in repr(mine)
    mine.get_storage_options().clear()
    assert mine.get_storage_options() == OPTIONS
