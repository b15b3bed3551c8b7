"""deltalake's own Python tests with `esker.delta` in the place of `deltalake`.

By hand, with a checkout of github.com/delta-io/delta-rs:

    python -m tests.interop.delta_peer_tests CHECKOUT [--peer] [ARGUMENTS OF PYTEST]

`--peer` runs them with the real deltalake, for comparison. Needs `pytest-mock`, `pytest-timeout`, `pytest-benchmark`
and `arro3-io` beside what the tests here need. Tests that ask for servers are left out as deltalake leaves them out.
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

TESTED = "ESKER_DELTA_PEER_TESTS_OF"
MARKS = "not integration and not benchmark and not no_pyarrow"
MODULES = ("_internal", "_util", "exceptions", "fs", "query", "schema", "table", "transaction", "warnings", "writer")
HOMES = ("esker.delta", "esker.delta.schema", "esker.delta.exceptions", "esker.delta.metadata", "esker.delta.table")
NANOSECONDS: dict[str, Any] = {
    "_NANOSECOND_TIMESTAMPS": False,
    "_disable_nanosecond_timestamps": lambda: None,
    "_nanosecond_timestamps_enabled": lambda: False,
}
PRIVATE = {
    "deltalake.writer._conversion": ("_convert_arro3_schema_to_delta",),
    "deltalake.writer._utils": ("try_get_table_and_table_uri",),
    "deltalake._util": ("encode_partition_value", "deprecate_positional_commit_args"),
}


def _private(module: str, name: str) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        pytest.fail(f"private helper {module}.{name}")

    return refuse


class _Alias(ModuleType):
    """A module of deltalake's: its names are those of `esker.delta`'s module of that name, or of its other modules."""

    def __init__(self, name: str, homes: tuple[str, ...]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__spec__ = ModuleSpec(name, None, is_package=True)
        self.__homes__ = homes

    def __getattr__(self, name: str) -> Any:
        if name in NANOSECONDS:
            return NANOSECONDS[name]
        if name == "enable_nanosecond_timestamps" or name in PRIVATE.get(self.__name__, ()):
            return _private(self.__name__, name)
        if name.startswith("__"):
            raise AttributeError(name)
        for home in self.__homes__:
            try:
                return getattr(importlib.import_module(home), name)
            except NotImplementedError as error:
                told = str(error)
                return lambda *_, **__: pytest.fail(told)
            except (AttributeError, ModuleNotFoundError):
                continue
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # What a test puts in the place of a name is meant for the module itself.
        for home in () if name.startswith("__") else self.__dict__.get("__homes__", ()):
            try:
                module = importlib.import_module(home)
            except ModuleNotFoundError:
                continue
            if name in vars(module):
                setattr(module, name, value)
        super().__setattr__(name, value)


def _install() -> None:
    package = _Alias("deltalake", HOMES)
    sys.modules["deltalake"] = package
    for name in MODULES:
        alias = _Alias(f"deltalake.{name}", (f"esker.delta.{name}", *HOMES))
        sys.modules[alias.__name__] = alias
        ModuleType.__setattr__(package, name, alias)
    for name in PRIVATE:
        sys.modules.setdefault(name, _Alias(name, ()))


def _install_absent() -> None:
    """Modules that the tests' `conftest.py` imports for servers that are not asked for."""
    try:
        importlib.import_module("azure.storage")
    except ModuleNotFoundError:
        for name in ("azure", "azure.storage"):
            sys.modules[name] = ModuleType(name)
        vars(sys.modules["azure.storage"])["blob"] = ModuleType("azure.storage.blob")


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
    tested = "deltalake" if "--peer" in arguments else "esker"
    arguments = [argument for argument in arguments if argument != "--peer"]
    # Paths in the tests are relative to the folder `python`; deltalake's sources must not be found there.
    folder = checkout / "python"
    if (folder / "deltalake").exists():
        raise SystemExit(f"expected a copy without {folder / 'deltalake'}, which hides what is tested; remove it there")
    if not any(argument.startswith("tests") for argument in arguments):
        arguments.append("tests")
    given = ["-q", "-o", "addopts=", "-m", MARKS, "-p", "no:cacheprovider", "-p", Path(__file__).stem]
    given.append("--ignore=tests/pyspark_integration")
    # Their tests are a package `tests`, as these are: another process, which finds this file by its own name.
    path = os.pathsep.join([str(Path(__file__).parent), *(each for each in sys.path if each)])
    environment = {**os.environ, "PYTHONPATH": path, TESTED: tested}
    return subprocess.run([sys.executable, "-m", "pytest", *given, *arguments], cwd=folder, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
elif os.environ.get(TESTED):
    # As a plug-in, before their `conftest.py` is imported.
    _install_absent()
    if os.environ[TESTED] == "esker":
        _install()
