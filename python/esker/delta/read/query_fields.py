"""Which columns of a query's result are columns of a table as they are: they keep what the table says of them.

DuckDB knows types alone. A query that reads one table, and each of whose columns is a star or the name of a column, is
known by its parse tree; its columns may be null, and have metadata, as in the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

# What may stand beside the columns and the table of such a query, and leaves rows out or orders them alone.
_HARMLESS = ("LIMIT_MODIFIER", "ORDER_MODIFIER", "DISTINCT_MODIFIER")


def table_fields(tree: str, names: list[str], tables: Mapping[str, pa.Schema]) -> list[pa.Field | None]:
    """For each column of a result the column of a table that it is, None if it is computed.

    Args:
        tree: The statement, as DuckDB's `json_serialize_sql` has it.
        names: Those of the result's columns.
        tables: The schemas of the tables that are registered, by their names in lower case.
    """
    none: list[pa.Field | None] = [None] * len(names)
    statements = json.loads(tree).get("statements") or [{}]
    node = statements[0].get("node", {})
    source = node.get("from_table") or {}
    schema = tables.get(str(source.get("table_name", "")).lower())
    if schema is None or node.get("type") != "SELECT_NODE" or source.get("type") != "BASE_TABLE":
        return none
    if source.get("column_name_alias") or node.get("group_expressions") or (node.get("cte_map") or {}).get("map"):
        return none
    if any(modifier.get("type") not in _HARMLESS for modifier in node.get("modifiers", [])):
        return none
    found: list[pa.Field | None] = []
    for column in node.get("select_list", []):
        found += _fields_of(column, schema)
    return found if len(found) == len(names) else none


def _fields_of(column: dict[str, Any], schema: pa.Schema) -> list[pa.Field | None]:
    if column.get("type") == "STAR":
        changed = ("exclude_list", "replace_list", "rename_list", "qualified_exclude_list", "columns", "expr")
        return [] if any(column.get(key) for key in changed) else list(schema)
    if column.get("type") != "COLUMN_REF":
        return [None]
    name = str((column.get("column_names") or [""])[-1]).lower()
    same = [field for field in schema if field.name.lower() == name]
    return [same[0] if len(same) == 1 and len(column["column_names"]) <= 2 else None]
