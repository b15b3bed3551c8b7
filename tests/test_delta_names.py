"""The names of deltalake: each is here, or says what to do instead."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import os
import pickle
import pkgutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import datafusion
import deltalake
import pyarrow as pa
import pytest
from deltalake.table import TableAlterer, TableOptimizer

import esker
import esker.delta
from esker.delta import DeltaTable, Field, Schema, TableFeatures, write_deltalake
from esker.delta.missing import NAMES, OPTIMIZER_METHODS, TABLE_METHODS
from esker.exceptions import InvalidArgumentError, UnsupportedError


def _public(owner: Any) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]


def _own_names(module: Any) -> list[str]:
    """What a module of deltalake's defines, or hands out."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not name.startswith("_")]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


# Names by which deltalake's own modules call its Rust, and what they keep for themselves.
MODULES = [module.name for module in pkgutil.iter_modules(deltalake.__path__, "deltalake.") if "._" not in module.name]
THERE = [*MODULES, "deltalake.writer.properties", "deltalake.fs.fs_handler"]
SAME_MODULES = ("deltalake.table", "deltalake.schema", "deltalake.fs", "deltalake.query", "deltalake.writer")


def _is_ours_or_missing(name: str, module: str) -> bool:
    same = getattr(esker.delta, module.rpartition(".")[2], None) if module in SAME_MODULES else None
    if hasattr(same, name):
        return True
    try:
        getattr(esker.delta, name)
    except UnsupportedError as error:
        return error.operation == name and "; " in str(error)
    return True


@pytest.mark.parametrize("module", ["deltalake", *MODULES])
def test_every_name_of_a_module_is_here_or_says_what_to_do(module: str) -> None:
    names = _own_names(importlib.import_module(module))
    if module == "deltalake.exceptions":
        assert set(names) <= set(_public(esker.delta.exceptions))
        return
    assert [name for name in names if not _is_ours_or_missing(name, module)] == []


@pytest.mark.parametrize("module", THERE)
def test_a_module_has_its_names_under_its_own_path_or_says_what_to_do(module: str) -> None:
    ours = importlib.import_module(module.replace("deltalake", "esker.delta", 1))
    for name in _own_names(importlib.import_module(module)):
        if name == "BaseDeltaStorageHandler" or hasattr(ours, name):
            continue
        with pytest.raises(UnsupportedError, match=f"{ours.__name__}.{name} is not supported yet; "):
            getattr(ours, name)


def test_a_version_is_that_of_the_package() -> None:
    assert esker.delta.__version__ == esker.__version__ == esker.delta.rust_core_version()


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2]}))
    return DeltaTable(tmp_path / "t")


def test_every_method_of_a_table_is_here_or_says_what_to_do(table: DeltaTable) -> None:
    for name in _public(deltalake.DeltaTable):
        if name in TABLE_METHODS:
            with pytest.raises(UnsupportedError, match="is not supported yet; ") as raised:
                getattr(table, name)("any", argument=1)
            assert raised.value.operation == name
        else:
            assert hasattr(table, name), name
    for name, found in OPTIMIZER_METHODS.items():
        theirs = [each for each in inspect.signature(getattr(TableOptimizer, name)).parameters if each != "args"]
        assert theirs == ["self", *found.parameters.split()]
    for name in _public(TableOptimizer):
        with pytest.raises(UnsupportedError, match="write them anew|write the rows anew"):
            getattr(table.optimize, name)()
    assert set(_public(TableAlterer)) <= set(_public(table.alter))


def test_nothing_is_said_to_be_missing_that_deltalake_does_not_have() -> None:
    assert {*TABLE_METHODS} <= set(dir(deltalake.DeltaTable))
    assert set(OPTIMIZER_METHODS) == set(_public(TableOptimizer))
    known = {name.rpartition(".")[2] for name in MODULES} | set(_public(deltalake))
    for module in THERE:
        known |= set(_public(importlib.import_module(module)))
    assert set(NAMES) <= known
    assert not set(NAMES) & set(esker.delta.__all__)


def test_datafusion_is_told_how_a_table_is_registered(table: DeltaTable) -> None:
    context = datafusion.SessionContext()
    with pytest.raises(UnsupportedError, match=r"register_dataset\(name, table.to_pyarrow_dataset\(\)\)"):
        context.register_table("t", table)
    context.register_dataset("t", table.to_pyarrow_dataset())
    assert context.sql("select id from t where id > 1").to_pydict() == {"id": [2]}


def test_importing_a_missing_name_says_what_to_do() -> None:
    with pytest.raises(UnsupportedError, match="traces|trace the program"):
        from esker.delta import init_tracing  # noqa: F401
    with pytest.raises(UnsupportedError, match="nothing experimental"):
        from esker.delta.warnings import ExperimentalWarning  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(UnsupportedError, match="create_write_transaction"):
        from esker.delta.transaction import RemoveAction  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = esker.delta.nonsense


def test_a_table_with_missing_names_is_looked_at_copied_and_pickled(table: DeltaTable) -> None:
    names = {name for name, _ in inspect.getmembers(table)}
    assert {"merge", "optimize", "version"} <= names
    assert copy.copy(table).version() == pickle.loads(pickle.dumps(table)).version() == 0
    assert set(_public(table)) >= set(_public(deltalake.DeltaTable))


def test_features_that_are_not_written_are_refused_by_name(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, Schema([Field("id", "long")]))
    theirs = {name for name in _public(deltalake.TableFeatures) if not name.startswith("__")}
    assert theirs <= set(TableFeatures.__members__)
    with pytest.raises(UnsupportedError, match="timestampNanos"):
        table.alter.add_feature(TableFeatures.TimestampNanos, allow_protocol_versions_increase=True)


def test_what_is_said_to_do_instead_of_delete_and_restore_does_it(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3]}))
    nothing = pa.table({"id": pa.array([], pa.int64())})
    write_deltalake(tmp_path, nothing, mode="overwrite", predicate="id > 1")
    assert DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist() == [1]
    write_deltalake(tmp_path, DeltaTable(tmp_path, 0).scan(), mode="overwrite")
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]


def test_the_package_loads_its_names_when_they_are_used() -> None:
    code = (
        "import sys, esker.delta; assert 'esker.delta.table' not in sys.modules, 'table'; "
        "from esker.delta import Field; assert 'esker.delta.write.writer' not in sys.modules, 'writer'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_names_what_is_missing() -> None:
    page = (Path(__file__).parent.parent / "docs" / "delta.md").read_text()
    section = page.partition("## Names that are not here yet")[2].partition("\n## ")[0]
    for name in [*TABLE_METHODS, *OPTIMIZER_METHODS, *NAMES]:
        assert f"`{name}`" in section or f"DeltaTable.{name}`" in section, name


def _parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "args", "kwargs")]


SCHEMA_CLASSES = ["Schema", "Field", "PrimitiveType", "ArrayType", "MapType", "StructType", "VariantType"]


@pytest.mark.parametrize("name", SCHEMA_CLASSES)
def test_arguments_of_schemas_have_the_peers_names(name: str) -> None:
    theirs, ours = getattr(deltalake.schema, name), getattr(esker.delta.schema, name)
    for method in ("from_json", "from_arrow", "to_json", "to_arrow"):
        assert _parameters(getattr(ours, method)) == _parameters(getattr(theirs, method))


def test_defaults_of_a_table_are_the_peers() -> None:
    for name in _public(DeltaTable):
        theirs = getattr(deltalake.DeltaTable, name, None)
        if not callable(theirs) or name in TABLE_METHODS:
            continue
        known = inspect.signature(getattr(DeltaTable, name)).parameters
        for parameter in inspect.signature(theirs).parameters.values():
            if parameter.kind is not parameter.VAR_POSITIONAL:
                # Some of theirs are objects of their own that look like the default.
                assert repr(known[parameter.name].default) == repr(parameter.default), f"{name}({parameter.name})"


def test_a_feed_begins_with_the_later_of_a_version_and_a_time(tmp_path: Path) -> None:
    times = []
    for number in range(4):
        on: dict[str, str | None] = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append", configuration=on)
        log = tmp_path / "_delta_log" / f"{number:020}.json"
        entries = [json.loads(line) for line in log.read_text().splitlines()]
        times.append(next(entry["commitInfo"]["timestamp"] for entry in entries if "commitInfo" in entry) / 1000)
        os.utime(log, (times[-1], times[-1] + 0.0001))
        time.sleep(0.01)
    middle = datetime.fromtimestamp(times[2] - 0.002, UTC).isoformat()
    for start in (0, 1, 3):
        for end in (None, 1, 3):
            ranges: list[dict[str, Any]] = [{"starting_timestamp": middle}, {"ending_timestamp": middle}]
            for more in ranges:
                ours, theirs = (
                    pa.table(table(tmp_path).load_cdf(start, end, allow_out_of_range=True, **more))
                    for table in (DeltaTable, deltalake.DeltaTable)
                )
                assert sorted(ours["id"].to_pylist()) == sorted(theirs["id"].to_pylist())
    assert pa.table(DeltaTable(tmp_path).load_cdf(None)).num_rows == 4
    with pytest.raises(InvalidArgumentError, match="expected a version of 0 or more, found -1"):
        DeltaTable(tmp_path).load_cdf(-1)
