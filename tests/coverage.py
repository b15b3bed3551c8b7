"""How much of each room of the package a run has reached: `make coverage`."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from pathlib import Path

import coverage

import esker

ROOT = Path(esker.__file__).parent


def room(path: Path) -> str:
    """`lance/` of a file below it; `esker` of one beside the rooms."""
    parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else ("esker",)
    return f"{parts[0]}/" if len(parts) > 1 else "esker"


def main() -> None:
    """Puts together what all processes have noted, and prints a line per room."""
    measured = coverage.Coverage()
    with contextlib.redirect_stdout(io.StringIO()):
        measured.combine()
        measured.save()
    lines: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for name in measured.get_data().measured_files():
        _, statements, _, missing, _ = measured.analysis2(name)
        for key in (room(Path(name)), "total"):
            lines[key] += len(statements)
            missed[key] += len(missing)
    for key in sorted(lines, key=lambda key: (key == "total", key)):
        if lines[key]:
            reached = 100 * (1 - missed[key] / lines[key])
            print(f"{key:10} {reached:6.1f} %  {missed[key]:6} of {lines[key]:6} lines missed")


if __name__ == "__main__":
    main()
