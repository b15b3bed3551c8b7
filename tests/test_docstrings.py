"""Every example in a docstring of the Python API runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import esker

# These need a running Spark or the tutorial's data: their own tests run them.
APART = ("esker.spark", "esker.demo", "esker.cli.__main__", "esker._native")

MODULES = [
    module.name for module in pkgutil.walk_packages(esker.__path__, "esker.") if not module.name.startswith(APART)
]


@pytest.mark.parametrize("name", ["esker", *MODULES])
def test_the_examples_of_a_module_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert result.failed == 0


def test_every_public_name_is_documented() -> None:
    undocumented = [name for name in esker.__all__ if not name.startswith("_") and not getattr(esker, name).__doc__]
    assert undocumented == []
