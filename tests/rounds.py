"""How many rounds of random histories a run has: few, and by hand `ESKER_ROUNDS` times as many."""

from __future__ import annotations

import os

TIMES = float(os.environ.get("ESKER_ROUNDS", "1"))


def rounds(few: int) -> int:
    """So many in a run of all tests."""
    return max(1, round(few * TIMES))
