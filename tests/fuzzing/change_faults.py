"""What pylance 14 does wrong, by name: such a change is made by us on both copies. A test of each says that it still does."""

from __future__ import annotations

import re


from tests.fuzzing.change_steps import Step
from tests.fuzzing.plain_table import PlainTable


def known_fault(step: Step, table: PlainTable, version: str) -> str | None:
    """The name of the fault that keeps pylance from making a change; None if it can."""
    for text in step.facts.get("conditions", []):
        if _has_path(text):
            return "a path sees what lies below a null struct"
    if step.kind == "join" and any(row["k"] is None for row in table.rows):
        return "null keys are equal in a join"
    return None


def _has_path(text: str) -> bool:
    names = re.sub(r"\b(?:source|target)\.", "", re.sub(r"'[^']*'", "", text))
    return "." in names
