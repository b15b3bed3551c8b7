"""What pylance 14 does wrong, by name: we make such a change on both copies. A test of each says that it still does."""

from __future__ import annotations

import re

import pyarrow as pa

from tests.fuzzing.change_steps import Step, lacks_fields
from tests.fuzzing.plain_table import PlainTable, key_of

DELETES_ALONE = "a merge of deletes alone is not planned"
HIDDEN = "a path sees what lies below a null struct"
NULLS_LEFT_OUT = "rows without a key are not inserted where structs lack fields"
BARE_COPIES = "a copy of an extension column is of its storage type"
NEW_VALUES_SEEN = "a new value sees the new values of columns before it"
REFUSALS = {
    "Not supported: Deleting rows from the target": "structs that lack fields go with no delete of unmatched rows",
    "Not supported: Combining when_matched": "structs that lack fields go with no delete of matched rows and inserts",
    "RewriteColumns cannot express this": "a merge of columns takes no source without rows",
    "does not exist in source struct": DELETES_ALONE,
    "does not contain any data": "a fragment that no column is left of cannot be read",
    "did not have any fields in common": "a file whose fields were all replaced is not valid",
    "null_bit_buffer size too small": "bools with nulls below null structs are cut wrongly between files",
}
"""By what it says, what pylance refuses though it could be done."""


def known_fault(step: Step, table: PlainTable) -> str | None:
    """The name of the fault that keeps pylance from making a change; None if it can."""
    if any(_has_path(text) for text in step.facts.get("conditions", [])):
        return HIDDEN
    values = step.facts.get("values", {})
    if any(text in values for text in values.values()):
        return NEW_VALUES_SEEN
    if step.kind == "add" and isinstance(step.facts["type"], pa.BaseExtensionType):
        return BARE_COPIES
    clauses = step.facts.get("clauses")
    if clauses is None:
        return None
    without_key = any(key_of(row, clauses.on) is None for row in step.facts["rows"].to_pylist())
    if clauses.insert and without_key and lacks_fields(step.facts["given"], table.schema):
        return NULLS_LEFT_OUT
    if clauses.matched == "delete" and clauses.delete_unmatched and not clauses.insert:
        return DELETES_ALONE
    return None


def refusal(error: Exception) -> str | None:
    """The name of the fault that makes pylance refuse a change; None if it is right to, or ours is the fault."""
    return next((name for text, name in REFUSALS.items() if text in str(error)), None)


def _has_path(text: str) -> bool:
    return "." in re.sub(r"\b(?:source|target)\.", "", re.sub(r"'[^']*'", "", text))
