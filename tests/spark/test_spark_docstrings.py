"""The examples in the docstrings of `esker.spark` that need no session of Spark."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import esker.spark

MODULES = [module.name for module in pkgutil.walk_packages(esker.spark.__path__, "esker.spark.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), raise_on_error=False).failed == 0
