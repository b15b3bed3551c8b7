"""Every public name of pylance is there, or says what to do instead; tools that look at all attributes pass over it."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import pickle
import pkgutil
import pydoc
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import lance.dataset
import lance.file
import lance.fragment
import lance.optimize
import lance.progress
import lance.schema
import lance.udf
import pyarrow as pa
import pytest

import esker
from esker import exceptions, missing_names
from esker.exceptions import UnsupportedError
from esker.missing import MissingAttributeError

ADVICE = r"^[\w.]+ is not supported yet; \w.{10,}"

MODULES = ["blob", "commit", "dataset", "file", "fragment", "optimize", "progress", "schema", "udf"]
"""Those that both have."""


def _theirs(name: str) -> list[str]:
    """The public names of a module of pylance: what it lists, else what is made there or in its core."""
    module = importlib.import_module(f"lance.{name}" if name else "lance")
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [found for found in listed if not found.startswith("_")]
    return [found for found, value in vars(module).items() if not found.startswith("_") and _is_of_pylance(value)]


def _is_of_pylance(value: object) -> bool:
    module = getattr(value, "__module__", None)
    return not isinstance(value, ModuleType) and isinstance(module, str) and module.split(".")[0] == "lance"


def _ours(name: str) -> ModuleType:
    return importlib.import_module(f"esker.{name}" if name else "esker")


@pytest.mark.parametrize("module", ["", *MODULES])
def test_each_name_of_a_module_is_there_or_says_what_to_do(module: str) -> None:
    lacking = []
    for name in _theirs(module):
        try:
            assert getattr(_ours(module), name) is not None
        except UnsupportedError as error:
            lacking.append(name)
            with pytest.raises(UnsupportedError, match=ADVICE):
                raise error
            assert name not in dir(_ours(module))
    told = missing_names.NAMES.get(_ours(module).__name__, {})
    assert set(lacking) <= set(told)


def test_the_modules_of_pylance_that_are_not_here_say_so() -> None:
    for found in pkgutil.iter_modules(lance.__path__):
        name = found.name
        if name.startswith("_") or name in ("lance", "conftest") or importlib.util.find_spec(f"esker.{name}"):
            continue
        with pytest.raises(UnsupportedError, match=ADVICE):
            getattr(esker, name)


def test_each_advice_is_of_a_name_that_pylance_has_and_esker_lacks() -> None:
    for module, told in missing_names.NAMES.items():
        peer = importlib.import_module(module.replace("esker", "lance"))
        modules = {found.name for found in pkgutil.iter_modules(lance.__path__)}
        for name in told:
            assert hasattr(peer, name) or (module == "esker" and name in modules), (module, name)
            with pytest.raises(UnsupportedError, match=ADVICE):
                getattr(importlib.import_module(module), name)


def _classes() -> Iterator[tuple[str, type, type]]:
    for module in ("", *MODULES):
        for name in _theirs(module):
            theirs = getattr(importlib.import_module(f"lance.{module}" if module else "lance"), name)
            try:
                ours = getattr(_ours(module), name)
            except UnsupportedError:
                continue
            if isinstance(theirs, type) and isinstance(ours, type) and not issubclass(theirs, dict):
                yield name, theirs, ours


CLASSES = {name: (theirs, ours) for name, theirs, ours in _classes()}

IN_THE_CORE = {("DataFile", "create"), ("DataFile", "field_ids")}
"""Of a class that the extension makes; `DataFile(...)` and `DataFile.fields` are the same."""


@pytest.mark.parametrize("name", CLASSES)
def test_each_attribute_of_a_class_is_there_or_says_what_to_do(name: str) -> None:
    theirs, ours = CLASSES[name]
    declared = set(getattr(ours, "__annotations__", {}))
    for attribute in [found for found in dir(theirs) if not found.startswith("_")]:
        if attribute in declared or (name, attribute) in IN_THE_CORE:
            continue
        found = inspect.getattr_static(ours, attribute)
        doc = inspect.getdoc(found.fget if isinstance(found, property) else found) or ""
        if doc.startswith("Raises `UnsupportedError`: not supported yet"):
            call = partial(found.fget, None) if isinstance(found, property) and found.fget else getattr(ours, attribute)
            if ours.__name__ == "ScannerBuilder":
                # Its setters take what asks for nothing.
                continue
            with pytest.raises(UnsupportedError, match=ADVICE):
                call()


def test_the_classes_that_matter_are_looked_at() -> None:
    wanted = {"LanceDataset", "LanceFragment", "LanceScanner", "ScannerBuilder", "LanceOperation", "MergeInsertBuilder"}
    assert wanted | {"FragmentMetadata", "LanceSchema", "Index", "Transaction", "LanceFileReader"} <= set(CLASSES)


def test_names_that_pylance_imports_from_elsewhere_are_found_where_it_has_them() -> None:
    for name in ("IOStats", "Session"):
        assert hasattr(importlib.import_module("lance.dataset"), name)
        assert getattr(_ours("dataset"), name) is getattr(esker, name)


def test_constants_that_both_have_are_the_same() -> None:
    assert _ours("fragment").DEFAULT_MAX_BYTES_PER_FILE == lance.fragment.DEFAULT_MAX_BYTES_PER_FILE


def test_names_that_nobody_has_are_attribute_errors_as_ever() -> None:
    for module in ("", *MODULES):
        assert not hasattr(_ours(module), "no_such_name")
    with pytest.raises(ImportError):
        exec("from esker import no_such_name")
    with pytest.raises(UnsupportedError, match="filter with LIKE"):
        exec("from esker import tokenize")
    with pytest.raises(UnsupportedError, match="compute distances"):
        exec("from esker.dataset import VectorIndexReader")


def test_whoever_asks_a_module_for_a_name_without_importing_it_gets_an_attribute_error() -> None:
    for module, name in [("esker", "tokenize"), ("esker.udf", "BatchUDFCheckpoint"), ("esker.delta", "init_tracing")]:
        found = importlib.import_module(module)
        assert not hasattr(found, name)
        assert getattr(found, name, None) is None
    # Pickle looks for such a function in every module there is.
    function = eval("lambda: None", {})
    function.__module__, function.__qualname__ = None, "tokenize"
    with pytest.raises((pickle.PicklingError, AttributeError)) as error:
        pickle.dumps(function)
    assert not isinstance(error.value, UnsupportedError)
    with pytest.raises(UnsupportedError, match="name a file"):
        exec("from esker.udf import BatchUDFCheckpoint")


def test_tools_that_look_at_all_attributes_pass_over_what_is_missing(uri: str) -> None:
    dataset = esker.write_dataset(pa.table({"a": [1, 2]}), uri)
    fragment = dataset.get_fragments()[0]
    for thing in (dataset, fragment, fragment.metadata, dataset.lance_schema):
        assert inspect.getmembers(thing)
        assert copy.copy(thing) is not None
        assert type(pickle.loads(pickle.dumps(thing))) is type(thing)
    assert not hasattr(dataset, "has_index")
    assert getattr(dataset, "has_index", None) is None
    with pytest.raises(UnsupportedError, match="scans read only what a filter needs") as caught:
        _ = dataset.has_index
    assert isinstance(caught.value, MissingAttributeError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.operation) == (MissingAttributeError, str(caught.value), "has_index")
    for module in ("", *MODULES):
        assert inspect.getmembers(_ours(module))
    assert "create_index" in pydoc.plain(pydoc.render_doc(esker.LanceDataset))


def test_each_argument_of_dataset_is_there_or_refused(uri: str) -> None:
    esker.write_dataset(pa.table({"a": [1]}), uri)
    ours = inspect.signature(esker.dataset).parameters
    assert {"session", "base_store_params"} <= set(ours)
    assert set(inspect.signature(lance.dataset).parameters) <= set(ours)
    for name in ("namespace_client", "table_id"):
        assert f"`{name}`" in (esker.dataset.__doc__ or "")
        given: dict[str, Any] = {name: {"a": "b"}}
        with pytest.raises(UnsupportedError, match=f"option {name} is not supported yet, leave it out"):
            esker.dataset(uri, **given)


def test_the_root_names_that_are_there_are_those_of_their_homes() -> None:
    assert esker.MergeInsertBuilder is type(esker.write_dataset(pa.table({"a": [1]}), "memory://").merge_insert("a"))
    assert isinstance(esker.CleanupStats, type)
    assert set(esker.__all__) <= set(dir(esker))
    assert all(getattr(esker, name) is not None for name in esker.__all__)
    assert exceptions.UnsupportedError.kind == MissingAttributeError.kind


def test_star_imports_and_a_bare_import_load_no_advice(tmp_path: Path) -> None:
    program = "import esker, sys; from esker import exceptions; assert 'esker.missing_names' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    subprocess.run([sys.executable, "-c", "from esker import *; dataset, write_dataset"], check=True, cwd=tmp_path)
