"""pylance's own Python tests with `esker` in the place of `lance`.

By hand, with a checkout of github.com/lance-format/lance:

    python -m tests.interop.lance_peer_tests CHECKOUT [--peer] [ARGUMENTS OF PYTEST]

`--peer` runs them with the real pylance, for comparison. Without names of files among the arguments, those of `FILES`
run: datasets, fragments, files, schema evolution, optimisation and what else is not about vectors. Names are relative
to `python/python/tests`. Only names of modules are put in place, never a behaviour: what esker has not, fails. Stores
in memory are emptied before each test, since they last as long as the process, and pylance's as long as a handle.
What is written: a line for each outcome, and at the end the numbers and, of failures, how many have the same last line.
"""

from __future__ import annotations

import collections
import importlib
import os
import re
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TESTED = "ESKER_LANCE_PEER_TESTS_OF"
FILES = (
    "dataset fragment file schema schema_evolution optimize migration session json arrow blob multi_base filter "
    "order_by table_ops debug lance commit_index backwards_compatibility ingestion table_provider"
)
MODULES = (
    "arrow fragment file schema dataset optimize commit debug progress log vector util dependencies udf blob types "
    "query lance indices tracing sampler _datagen"
)
HOMES = (
    "esker",
    "esker.dataset",
    "esker.fragment",
    "esker.schema",
    "esker.file",
    "esker.progress",
    "esker.exceptions",
    "esker.udf",
    "esker.blob",
    "esker.optimize",
    "esker.lance.refs.tags",
    "esker.commit",
    "esker.debug",
    "esker.dataset.optimizer",
    "esker.dataset.versions",
    "esker.lance.cleanup.automatic",
    "esker.lance.operation",
)
# Modules of pylance's that tests import at their head and that esker has not: a test fails when it calls their names.
ABSENT = ("vector", "util", "optimize", "debug", "sampler", "query", "indices")


def _missing(told: str) -> Any:
    return lambda *_, **__: pytest.fail(told)


class _Alias(ModuleType):
    """A module of pylance's: its names are those of esker's module of that name, or of its other modules."""

    def __init__(self, name: str, homes: tuple[str, ...]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__spec__ = ModuleSpec(name, None, is_package=True)
        self.__homes__ = homes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for home in self.__homes__:
            try:
                return getattr(importlib.import_module(home), name)
            except NotImplementedError as error:
                return _missing(str(error))
            except (AttributeError, ModuleNotFoundError):
                continue
        if self.__name__.removeprefix("lance.") in ABSENT:
            return _missing(f"missing {self.__name__}.{name}")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def _install() -> None:
    package = _Alias("lance", HOMES)
    sys.modules["lance"] = package
    for name in MODULES.split():
        alias = _Alias(f"lance.{name}", (f"esker.{name}", *HOMES))
        sys.modules[alias.__name__] = alias
        # `lance.dataset` is a function of the package as well as a module: the package keeps the function.
        if name != "dataset":
            ModuleType.__setattr__(package, name, alias)
    inner = ModuleType("lance._dataset")
    inner.__path__ = []
    sharded = ModuleType("lance._dataset.sharded_batch_iterator")
    vars(sharded)["ShardedBatchIterator"] = _missing("missing ShardedBatchIterator")
    sys.modules.update({module.__name__: module for module in (inner, sharded)})
    optional = vars(sys.modules["lance.dependencies"])
    for name in ("torch", "tensorflow", "datasets", "numpy", "pandas"):
        try:
            optional[name] = importlib.import_module(name)
        except ImportError:
            optional[name] = None
    for name in ("TORCH", "HUGGING_FACE", "POLARS", "PANDAS"):
        optional[f"_{name}_AVAILABLE"] = name == "PANDAS"


def pytest_runtest_setup() -> None:
    """Empties the stores in memory that tests name."""
    if os.environ.get(TESTED) == "esker":
        store = importlib.import_module("esker._native.store").Store("memory://test")
        store.delete_all(store.list_paths(""))


_LAST: collections.Counter[str] = collections.Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Counts the last lines of failures."""
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        told = str(crash.message if crash else report.longrepr).strip().splitlines()
        line = re.sub(r"'[^']*/[^']*'|/\S+|\b[0-9a-f-]{36}\b|\d+", "~", told[0] if told else "")
        _LAST[line[:150]] += 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The numbers by cause."""
    for line, count in _LAST.most_common():
        terminalreporter.write_line(f"{count:4} {line}")


def main() -> int:
    """Runs them."""
    checkout, arguments = Path(sys.argv[1]).resolve(), sys.argv[2:]
    tested = "lance" if "--peer" in arguments else "esker"
    arguments = [argument for argument in arguments if argument != "--peer"]
    folder = checkout / "python" / "python" / "tests"
    if not folder.is_dir():
        raise SystemExit(f"expected a checkout of lance, which has python/python/tests; found none in {checkout}")
    if not any(argument.startswith("test_") for argument in arguments):
        arguments += [f"test_{name}.py" for name in FILES.split()]
    # Their configuration asks for plug-ins and markers of their own: none is read.
    given = ["-q", "-rA", "--tb=line", "-o", "addopts=", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider"]
    given += ["-p", Path(__file__).stem]
    path = os.pathsep.join([str(Path(__file__).parent), *(str(Path(each).resolve()) for each in sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, TESTED: tested}
    return subprocess.run([sys.executable, "-m", "pytest", *given, *arguments], cwd=folder, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
elif os.environ.get(TESTED) == "esker":
    # As a plug-in, before their `conftest.py` is imported.
    _install()
