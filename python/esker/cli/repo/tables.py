"""The tables of a repository, for people: ranges, metaranges and dumps, with what their records mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..._native import graveler
from ..._native.graveler import Records, Storage
from ...repo.objects.batches import rows, table
from ...store.stores import absolute, resolve

Decode = Callable[[bytes], dict[str, Any]]


def described(file: str, storage_options: list[str]) -> tuple[dict[str, str], Iterator[dict[str, Any]]]:
    """A table's properties, and its records with what their data mean, one at a time."""
    folder, _, name = absolute(file).rpartition("/")
    pairs = dict(pair.split("=", 1) for pair in storage_options)
    store = resolve(folder, storage_options=pairs or None)
    found = Storage(store, prefix="").records_of_file(name)
    properties = {name: _property(name, value) for name, value in found.properties.items()}
    return properties, _records(found, _decoder(properties))


def _property(name: str, value: bytes) -> str:
    counted = ("rocksdb.num", "rocksdb.raw", "rocksdb.data", "rocksdb.index.size", "rocksdb.index.partitions")
    if name.startswith((*counted, "rocksdb.top")):
        return str(sum((byte & 127) << 7 * at for at, byte in enumerate(value)))
    text = value.decode("utf-8", "replace")
    return text if text.isprintable() else value.hex()


def _records(found: Records, decode: Decode) -> Iterator[dict[str, Any]]:
    for row in rows(found):
        yield {"key": row["key"].decode("utf-8", "replace"), **decode(row["data"]), **_identity(row["identity"])}


def _identity(identity: bytes) -> dict[str, Any]:
    is_text = identity.isascii() and identity.decode("ascii").isalnum()
    return {"identity": identity.decode() if is_text else identity.hex()}


def _decoder(properties: dict[str, str]) -> Decode:
    if properties.get("type") == "metaranges":
        return _range
    return {"commit": _commit, "branch": _ref, "tag": _ref}.get(properties.get("entity", ""), _entry)


def _entry(data: bytes) -> dict[str, Any]:
    (row,) = table(graveler.decode_entry(data)).to_pylist(maps_as_pydicts="strict")
    del row["identity"]
    return dict(row)


def _range(data: bytes) -> dict[str, Any]:
    first, _, size, count = graveler.decode_range(data)
    return {"min_key": first.decode("utf-8", "replace"), "estimated_size": size, "count": count}


def _ref(data: bytes) -> dict[str, Any]:
    return {"commit_id": graveler.decode_ref(data)[1]}


def _commit(data: bytes) -> dict[str, Any]:
    commit = graveler.Commit.decode(data)
    names = ("committer", "message", "creation_date", "metarange_id", "metadata", "parents", "generation")
    return {name: getattr(commit, name) for name in names}
