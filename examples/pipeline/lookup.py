"""Step 3: features of some users by random access to the Lance table, and of what happened to one from the Delta table.

python examples/pipeline/lookup.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import esker
from esker.delta import DeltaTable


def main(folder: Path) -> None:
    """Rows by their numbers, and changes of one user."""
    users = esker.dataset(folder / "users.lance")
    taken = users.take([0, users.count_rows() - 1], columns=["id", "visits"])
    print(f"{taken.num_rows} users taken of {users.count_rows()}")
    changes = DeltaTable(folder / "changes.delta").scan(["_change_type", "_commit_version"], "id = 60").read_all()
    told = sorted(changes.to_pylist(), key=lambda change: int(change["_commit_version"]))
    print("user 60:", ", ".join(change["_change_type"] for change in told))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pipeline"))
