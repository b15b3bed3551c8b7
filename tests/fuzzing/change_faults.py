"""What pylance 14 does wrong, by name: we make such a change on both copies. A test of each says that it still does."""

from __future__ import annotations

import re

from tests.fuzzing.change_steps import Step
from tests.fuzzing.plain_table import PlainTable

HIDDEN = "a path sees what lies below a null struct"
NULL_KEYS = "null keys are equal in a join"
DELETES_ALONE = "a merge of deletes alone is not planned"
EMPTY_FILES = "a file whose fields were all replaced is not valid"


def known_fault(step: Step, table: PlainTable) -> str | None:
    """The name of the fault that keeps pylance from making a change; None if it can."""
    if any(_has_path(text) for text in step.facts.get("conditions", [])):
        return HIDDEN
    if step.kind == "join" and any(row["k"] is None for row in table.rows):
        return NULL_KEYS
    clauses = step.facts.get("clauses")
    if clauses is not None and clauses.matched == "delete" and clauses.delete_unmatched and not clauses.insert:
        return DELETES_ALONE
    return None


def _has_path(text: str) -> bool:
    return "." in re.sub(r"\b(?:source|target)\.", "", re.sub(r"'[^']*'", "", text))
