"""Errors beside pylance's: whatever builtin class its error has, ours has too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import esker
from esker.exceptions import EskerError

CLASSES = (OSError, ValueError, TypeError, IndexError, KeyError, RuntimeError, NotImplementedError)
ROWS = pa.table({"id": [1, 2], "s": ["a", None]})
NO_JSON = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["tru"]))
TWICE = pa.Table.from_arrays([pa.array([1]), pa.array([1])], ["a", "a"])

Call = Callable[[Any, Any, str], Any]
CALLS: dict[str, Call] = {
    "delete, no such column": lambda m, ds, uri: ds.delete("nope = 1"),
    "delete, no SQL": lambda m, ds, uri: ds.delete("id = = 1"),
    "delete, no condition": lambda m, ds, uri: ds.delete("s + 1"),
    "update, no such column": lambda m, ds, uri: ds.update({"nope": "1"}),
    "update, no such value": lambda m, ds, uri: ds.update({"id": "nope"}),
    "update, no condition": lambda m, ds, uri: ds.update({"id": "1"}, where="nope=1"),
    "alter, no such column": lambda m, ds, uri: ds.alter_columns({"path": "zz", "name": "q"}),
    "alter, a name that is taken": lambda m, ds, uri: ds.alter_columns({"path": "id", "name": "s"}),
    "alter, nulls": lambda m, ds, uri: ds.alter_columns({"path": "s", "nullable": False}),
    "drop, no such column": lambda m, ds, uri: ds.drop_columns(["zz"]),
    "drop all": lambda m, ds, uri: ds.drop_columns(["id", "s"]),
    "add what is there": lambda m, ds, uri: ds.add_columns({"id": "1"}),
    "add, no such column": lambda m, ds, uri: ds.add_columns({"x": "nope+1"}),
    "add, no SQL": lambda m, ds, uri: ds.add_columns({"x": "1 +"}),
    "merge what is there": lambda m, ds, uri: ds.merge(ROWS, "id"),
    "merge without the key": lambda m, ds, uri: ds.merge(pa.table({"q": [1], "z": ["a"]}), "id"),
    "upsert, twice": lambda m, ds, uri: (
        ds.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [1, 1], "s": ["x", "y"]}))
    ),
    "upsert that must not match": lambda m, ds, uri: ds.merge_insert("id").when_matched_fail().execute(ROWS),
    "upsert, no such condition": lambda m, ds, uri: (
        ds.merge_insert("id").when_matched_update_all("source.nope = 1").execute(ROWS)
    ),
    "upsert, no such key": lambda m, ds, uri: ds.merge_insert("nope"),
    "upsert of nothing": lambda m, ds, uri: ds.merge_insert("id").execute(ROWS),
    "filter, no such column": lambda m, ds, uri: ds.to_table(filter="nope=1"),
    "count, no such column": lambda m, ds, uri: ds.count_rows("nope = 1"),
    "scan, no such column": lambda m, ds, uri: ds.to_table(columns=["nope"]),
    "take beyond the end": lambda m, ds, uri: ds.take([99]),
    "write what is no JSON": lambda m, ds, uri: m.write_dataset(pa.table({"j": NO_JSON}), uri + "j"),
    "write a name of the system": lambda m, ds, uri: m.write_dataset(pa.table({"_rowid": [1]}), uri + "r"),
    "write a name twice": lambda m, ds, uri: m.write_dataset(TWICE, uri + "d"),
    "write a name with a dot": lambda m, ds, uri: m.write_dataset(pa.table({"a.b": [1]}), uri + "e"),
    "append other columns": lambda m, ds, uri: ds.insert(pa.table({"zz": [1]})),
    "clean up no versions": lambda m, ds, uri: ds.cleanup_old_versions(versions=[]),
    "no such version": lambda m, ds, uri: m.dataset(uri, version=99),
    "no table": lambda m, ds, uri: m.dataset(uri + "none"),
    "check out no version": lambda m, ds, uri: ds.checkout_version(99),
    "no such tag": lambda m, ds, uri: ds.tags.delete("nope"),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_is_of_pylances_builtin_class(tmp_path: Path, name: str) -> None:
    raised = []
    for library in (lance, esker):
        uri = str(tmp_path / library.__name__)
        dataset = library.write_dataset(ROWS, uri)
        with pytest.raises(CLASSES) as caught:
            CALLS[name](library, dataset, uri)
        raised.append(caught.value)
        assert library.dataset(uri).version == 1
    theirs, ours = raised
    assert isinstance(ours, EskerError)
    wanted = [one for one in CLASSES if isinstance(theirs, one)]
    assert all(isinstance(ours, one) for one in wanted), (wanted, type(ours).__mro__)
