"""`import esker.repo` loads what every use of a repository needs, and nothing that only some uses need."""

from __future__ import annotations

import subprocess
import sys

LOADED = "import sys, pyarrow; before = set(sys.modules); {}; print(*sorted(set(sys.modules) - before))"


def loaded(code: str) -> set[str]:
    """The modules that some code loads beyond `import pyarrow`, in a process of its own."""
    said = subprocess.run([sys.executable, "-c", LOADED.format(code)], capture_output=True, text=True, check=True)
    return set(said.stdout.split())


def test_a_repository_loads_neither_tables_nor_pandas_nor_upkeep() -> None:
    found = loaded("import esker.repo")
    assert "esker.repo.repository" in found
    heavy = {"pandas", "fsspec", "pyarrow.dataset", "pyarrow.parquet", "tempfile"}
    rooms = {"arrow", "cli", "dataset", "delta", "demo", "file", "fragment", "lance", "scanner", "spark"}
    upkeep = {"dump", "fsck", "garbage_collection", "packing", "retention"}
    unwanted = heavy | {f"esker.{room}" for room in rooms} | {f"esker.repo.upkeep.{name}" for name in upkeep}
    assert not {name for name in found if any(name == one or name.startswith(f"{one}.") for one in unwanted)}
