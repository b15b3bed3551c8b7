"""Which room of the package may import which, whether at the top, in a function or for types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[1] / "python"

LEAVES = {
    "_native",
    "cached",
    "declared_keys",
    "exceptions",
    "missing",
    "missing_names",
    "progress",
    "schema",
    "storage_version",
    "udf",
}
"""What everybody may use; they use each other alone."""
LANCE = {"store", "commit", "arrow", "lance"}
TABLES = {*LANCE, "scanner", "fragment", "dataset", "optimize", "debug", "blob", "delta", "file", "repo"}
PUBLIC = {*TABLES, "esker"}
LAYERS: dict[str, set[str]] = {
    **{leaf: set() for leaf in LEAVES},
    "store": set(),
    "commit": {"store"},
    "arrow": {"store"},
    "blob": LANCE,
    "file": LANCE,
    "lance": {"store", "commit", "arrow"},
    "optimize": LANCE,
    "debug": {*LANCE, "scanner", "fragment"},
    "delta": {"store", "commit", "arrow"},
    "repo": {"store", "commit", "arrow", "lance", "delta"},
    "scanner": LANCE,
    "fragment": {*LANCE, "scanner"},
    "dataset": {*LANCE, "scanner", "fragment"},
    "esker": TABLES,
    "cli": PUBLIC,
    "spark": PUBLIC,
    "demo": {*PUBLIC, "spark"},
    "__main__": {"cli"},
}
"""Each room, and which others it may import beside the leaves."""


def room(module: str) -> str:
    """`lance` of `esker.lance.write.staging`; the package itself is a room too."""
    return module.partition(".")[2].partition(".")[0] or "esker"


def imported(module: str, tree: ast.AST, is_package: bool, modules: set[str]) -> Iterator[str]:
    """The modules of the package that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")
            start = parents[: len(parents) - node.level + is_package] if node.level else []
            source = ".".join([*start, *(node.module or "").split(".")]).strip(".")
            for alias in node.names if source in modules else []:
                yield inner if (inner := f"{source}.{alias.name}") in modules else source


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    paths = [path for suffix in ("py", "pyi") for path in (PYTHON / "esker").rglob(f"*.{suffix}")]
    names = {path: ".".join(path.relative_to(PYTHON).with_suffix("").parts) for path in paths}
    names = {path: name.removesuffix(".__init__") for path, name in names.items()}
    modules = set(names.values())
    found: dict[str, set[str]] = {}
    for path, name in names.items():
        # The stubs of one extension are one thing.
        if path.suffix == ".py":
            made = imported(name, ast.parse(path.read_text()), path.stem == "__init__", modules)
            found[name] = set(made) - {name}
    assert len(found) > 100
    return found


def test_a_room_imports_only_what_lies_below_it(graph: dict[str, set[str]]) -> None:
    edges = [(one, other) for one, others in graph.items() for other in others if room(one) != room(other)]
    allowed = {name: {*below, *LEAVES} for name, below in LAYERS.items()}
    assert {room(module) for module in graph} <= set(LAYERS)
    assert sorted(f"{one} -> {other}" for one, other in edges if room(other) not in allowed[room(one)]) == []


def test_no_modules_import_each_other_in_a_circle(graph: dict[str, set[str]]) -> None:
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1][::-1]))


def test_the_table_itself_has_no_circle() -> None:
    list(TopologicalSorter(LAYERS).static_order())
