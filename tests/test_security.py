"""What `SECURITY.md` claims: its tests are there, and what no other test holds."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from esker.delta import DeltaTable, write_deltalake

ROOT = Path(__file__).parent.parent
CLAIMS = sorted(
    set(re.findall(r"`((?:tests|rust)/[\w./]+\.(?:py|rs))(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text()))
)
PACKAGES = [ROOT / "python" / "esker", ROOT / "python" / "pyspark_esker"]
# What turns bytes into code.
MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "yaml", "joblib", "subprocess"}
CALLS = {"eval", "exec", "compile", "__import__"}


@pytest.mark.parametrize(("path", "name"), CLAIMS, ids=lambda value: value)
def test_a_test_that_is_named_is_there(path: str, name: str) -> None:
    text = (ROOT / path).read_text()
    assert not name or re.search(rf"(?:def|fn) {name}\(", text)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_nothing_that_is_read_is_unpickled_or_evaluated(package: Path) -> None:
    found = []
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name.partition(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [(node.module or "").partition(".")[0]]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                found.append((path.name, node.func.id))
            found += [(path.name, name) for name in names if name in MODULES]
    assert found == []


def test_a_delta_log_may_name_files_elsewhere(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "private", pa.table({"secret": [1, 2]}))
    write_deltalake(tmp_path / "public", pa.table({"secret": [0]}))
    (private,) = (tmp_path / "private").glob("*.parquet")
    entry = tmp_path / "public" / "_delta_log" / f"{1:020}.json"
    add = {"path": private.as_uri(), "partitionValues": {}, "size": private.stat().st_size, "modificationTime": 0}
    entry.write_text(json.dumps({"add": {**add, "dataChange": True}}) + "\n")
    table = DeltaTable(tmp_path / "public")
    assert sorted(table.to_pyarrow_table()["secret"].to_pylist()) == [0, 1, 2]
    assert [uri for uri in table.file_uris() if "private" in uri]
