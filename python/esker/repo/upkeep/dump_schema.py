"""The protobuf descriptors that the tables of a dump carry as `schema_definition`, as lakeFS writes them."""

from __future__ import annotations

import json
from typing import Any

PACKAGE = "io.treeverse.lakefs.graveler"

_STRING, _INT, _BOOL, _MESSAGE = "TYPE_STRING", "TYPE_INT32", "TYPE_BOOL", "TYPE_MESSAGE"
_ONE, _MANY = "LABEL_OPTIONAL", "LABEL_REPEATED"
_REF = [("id", _STRING, _ONE, ""), ("commit_id", _STRING, _ONE, "")]

# Names, types, labels and messages of the fields, which are numbered from 1.
_FIELDS: dict[str, list[tuple[str, str, str, str]]] = {
    "CommitData": [
        ("id", _STRING, _ONE, ""),
        ("committer", _STRING, _ONE, ""),
        ("message", _STRING, _ONE, ""),
        ("creation_date", _MESSAGE, _ONE, ".google.protobuf.Timestamp"),
        ("meta_range_id", _STRING, _ONE, ""),
        ("metadata", _MESSAGE, _MANY, f".{PACKAGE}.CommitData.MetadataEntry"),
        ("parents", _STRING, _MANY, ""),
        ("version", _INT, _ONE, ""),
        ("generation", _INT, _ONE, ""),
    ],
    "BranchData": [
        *_REF,
        ("staging_token", _STRING, _ONE, ""),
        ("sealed_tokens", _STRING, _MANY, ""),
        ("hidden", _BOOL, _ONE, ""),
    ],
    "TagData": _REF,
}
_MAP = [("key", _STRING, _ONE, ""), ("value", _STRING, _ONE, "")]


def definition(message: str) -> str:
    """A message's descriptor as JSON.

    Example:
        >>> from esker.repo.upkeep.dump_schema import definition
        >>> definition("TagData").startswith('{"name":"TagData","field":[{"name":"id","number":1,')
        True
    """
    said: dict[str, Any] = {"name": message, "field": _fields(_FIELDS[message])}
    if message == "CommitData":
        entry = {"name": "MetadataEntry", "field": _fields(_MAP), "options": {"mapEntry": True}}
        said["nestedType"] = [entry]
    return json.dumps(said, separators=(",", ":"))


def _fields(fields: list[tuple[str, str, str, str]]) -> list[dict[str, Any]]:
    found = []
    for number, (name, kind, label, of) in enumerate(fields, 1):
        said: dict[str, Any] = {"name": name, "number": number, "label": label, "type": kind}
        if of:
            said["typeName"] = of
        first, *rest = name.split("_")
        said["jsonName"] = first + "".join(part.capitalize() for part in rest)
        found.append(said)
    return found
