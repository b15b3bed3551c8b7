"""Writing checkpoints: all actions of a version in Parquet, so that readers need not replay the log.

```
_delta_log/{version:020}.checkpoint.parquet                            one file
_delta_log/{version:020}.checkpoint.{part:010}.{parts:010}.parquet     several, on request, told apart by path
_delta_log/{version:020}.checkpoint.{uuid}.parquet                     delta.checkpointPolicy = v2, its files in
_delta_log/_sidecars/{uuid}.parquet
_delta_log/_last_checkpoint                                            where a reader may begin
```

Spec: "Checkpoints", "Checkpoint Format", "Last Checkpoint File".
"""

from __future__ import annotations

import json
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .._native.delta import Snapshot
from .._native.store import Store
from ..exceptions import InvalidArgumentError, NotFoundError, UnsupportedError
from .checkpoint_schema import ACTIONS, ADD, REMOVE, StatisticsStruct, action_array, statistics_json
from .durations import TOMBSTONES, retention
from .history import LOG
from .log_state import SIDECARS, LogState
from .schema import Schema
from .table_metadata import TableState
from .write_protocol import check_writable, features_of

LAST_CHECKPOINT = f"{LOG}_last_checkpoint"
_DROPPED = {"stats_parsed", "partitionValues_parsed"}


def write_checkpoint(store: Store, snapshot: Snapshot, *, parts: int | None = None) -> None:
    """Writes the checkpoint of a version, and then the hint that leads to it.

    Args:
        store: The table's.
        snapshot: The version.
        parts: How many files it is cut into; one if not given.

    Raises:
        UnsupportedError: The table has features that this release does not write, or several parts are asked for where
            the table has v2 checkpoints.

    Example:
        `write_checkpoint(store, Snapshot.load(store))`
    """
    if parts is not None and parts < 1:
        raise InvalidArgumentError(f"expected at least one part, found {parts}")
    state = TableState.of(snapshot)
    check_writable(state.protocol)
    v2 = "v2Checkpoint" in features_of(state.protocol)
    if v2 and parts is not None and parts > 1:
        raise UnsupportedError("a table with v2 checkpoints has none of several parts; leave parts out")
    writer = _CheckpointWriter(store, snapshot, state)
    if v2 and state.configuration.get("delta.checkpointPolicy", "").lower() == "v2":
        writer.write_v2()
    else:
        writer.write_classic(parts or 1)


class _CheckpointWriter:
    def __init__(self, store: Store, snapshot: Snapshot, state: TableState) -> None:
        self._store = store
        self._version = snapshot.version
        self._log = LogState(store, snapshot)
        self._state = state
        configuration = state.configuration
        self._expired_before = time.time_ns() // 1_000_000 - retention(configuration, TOMBSTONES)
        self._as_json = configuration.get("delta.checkpoint.writeStatsAsJson", "true").lower() != "false"
        self._struct: StatisticsStruct | None = None
        self._snapshot = snapshot
        if configuration.get("delta.checkpoint.writeStatsAsStruct", "false").lower() == "true":
            self._struct = StatisticsStruct(state.schema, state.partition_by, configuration, mapped=state.mapped)
        self._partition = self._partition_type(state.schema)
        # Files that a JSON checkpoint holds are found while it is read.
        self._base = {name: list(self._log.base_types(name)) for name in ("add", "remove")}
        self._types = {"add": self._file_type("add", ADD), "remove": self._file_type("remove", REMOVE)}
        self._rows = self._adds = 0

    def _partition_type(self, schema: Schema) -> pa.DataType | None:
        if self._struct is None or not self._state.partition_by:
            return None
        arrow = schema.to_arrow()
        return pa.struct([pa.field(name, arrow.field(name).type) for name in self._state.partition_by])

    def _file_type(self, name: str, known: pa.DataType) -> pa.DataType:
        """The known fields, those that the checkpoint before had beside them, and those of newer entries."""
        fields = {known.field(i).name: known.field(i) for i in range(known.num_fields)}
        if name == "add" and not self._as_json:
            del fields["stats"]
        later: dict[str, list[Any]] = {}
        for type_ in self._base[name]:
            for i in range(type_.num_fields):
                field = type_.field(i)
                if field.name not in _DROPPED | {"stats"}:
                    fields.setdefault(field.name, field)
        for kind, action in self._log.files.values():
            if kind == name:
                for key, value in action.items():
                    if key not in fields and key not in _DROPPED | {"stats"}:
                        later.setdefault(key, []).append(value)
        for key, values in later.items():
            try:
                inferred = pa.array(values).type
            except pa.ArrowException as error:
                raise UnsupportedError(
                    f"no checkpoint was written: field {key!r} of {name} has values of different types, and a "
                    "checkpoint must not drop it"
                ) from error
            fields[key] = pa.field(key, pa.string() if pa.types.is_null(inferred) else inferred)
        if name == "add" and self._struct is not None:
            fields["stats_parsed"] = pa.field("stats_parsed", self._struct.type)
            if self._partition is not None:
                fields["partitionValues_parsed"] = pa.field("partitionValues_parsed", self._partition)
        return pa.struct(list(fields.values()))

    def write_classic(self, parts: int) -> None:
        """One file, or several told apart by the hash of paths."""
        base = f"{LOG}{self._version:020}.checkpoint"
        names = [f"{base}.parquet"]
        if parts > 1:
            names = [f"{base}.{number:010}.{parts:010}.parquet" for number in range(1, parts + 1)]
        columns = ("txn", "add", "remove", "metaData", "protocol", "domainMetadata")
        sinks = [_ActionFile(self._schema(columns)) for _ in names]
        for name, actions in self._others():
            sinks[0].write(name, actions)
        for name, actions in self._files():
            for number, sink in enumerate(sinks):
                sink.write(name, actions if parts == 1 else _of_part(actions, number, parts))
        size = 0
        for name, sink in zip(names, sinks, strict=True):
            data = sink.close()
            size += len(data)
            self._store.put(name, data)
        self._hint(size, {"parts": parts} if parts > 1 else {})

    def write_v2(self) -> None:
        """The files in a sidecar, all else in the checkpoint that names it."""
        sidecars = []
        sink = _ActionFile(self._schema(("add", "remove")))
        for name, actions in self._files():
            sink.write(name, actions)
        if self._rows:
            data = sink.close()
            path = f"{uuid.uuid4()}.parquet"
            self._store.put(SIDECARS + path, data)
            now = time.time_ns() // 1_000_000
            sidecars.append({"path": path, "sizeInBytes": len(data), "modificationTime": now})
        columns = ("txn", "metaData", "protocol", "domainMetadata", "checkpointMetadata", "sidecar")
        top = _ActionFile(self._schema(columns))
        for name, actions in self._others():
            top.write(name, actions)
        top.write("checkpointMetadata", action_array([{"version": self._version}], ACTIONS["checkpointMetadata"]))
        top.write("sidecar", action_array(sidecars, ACTIONS["sidecar"]))
        self._rows += 1 + len(sidecars)
        data = top.close()
        path = f"{self._version:020}.checkpoint.{uuid.uuid4()}.parquet"
        self._store.put(LOG + path, data)
        self._hint(len(data), {})

    def _schema(self, columns: tuple[str, ...]) -> pa.Schema:
        return pa.schema([(name, self._types.get(name, self._other_type(name))) for name in columns])

    def _other_type(self, name: str) -> pa.DataType:
        """The type of an action that is no file, with the fields that this release does not know."""
        known = ACTIONS[name]
        fields = {known.field(i).name: known.field(i) for i in range(known.num_fields)}
        for action in self._actions(name):
            for key, value in action.items():
                if key not in fields and value is not None:
                    fields[key] = pa.field(key, pa.array([value]).type)
        return pa.struct(list(fields.values()))

    def _actions(self, name: str) -> list[dict[str, Any]]:
        if name in self._log.single:
            return [self._log.single[name]]
        found = self._log.keyed.get(name, {}).values()
        return [action for action in found if not action.get("removed")]

    def _others(self) -> Iterator[tuple[str, pa.Array]]:
        for name in ("protocol", "metaData", "txn", "domainMetadata"):
            actions = self._actions(name)
            self._rows += len(actions)
            yield name, action_array(actions, self._other_type(name))

    def _files(self) -> Iterator[tuple[str, pa.Array]]:
        for name in ("add", "remove"):
            for actions in self._log.base_files(name):
                yield from self._checked(name, self._fit(name, actions))
        later: dict[str, list[dict[str, Any]]] = {"add": [], "remove": []}
        for name, action in self._log.files.values():
            later[name].append(action)
        for name, found in later.items():
            plain = pa.struct([f for f in _fields(self._types[name]) if f.name not in _DROPPED])
            if name == "add" and not self._as_json:
                plain = pa.struct([*_fields(plain), pa.field("stats", pa.string())])
            yield from self._checked(name, self._fit(name, action_array(found, plain)))

    def _checked(self, name: str, actions: pa.Array) -> Iterator[tuple[str, pa.Array]]:
        if name == "remove":
            deleted = pc.fill_null(actions.field("deletionTimestamp"), 0)
            actions = actions.filter(pc.greater_equal(deleted, self._expired_before))
        self._rows += len(actions)
        self._adds += len(actions) if name == "add" else 0
        if len(actions):
            yield name, actions

    def _fit(self, name: str, actions: pa.StructArray) -> pa.StructArray:
        there = {field.name: index for index, field in enumerate(_fields(actions.type))}
        columns = []
        for field in _fields(self._types[name]):
            if field.name == "dataChange":
                columns.append(pa.repeat(pa.scalar(False), len(actions)))
            elif field.name == "stats":
                columns.append(self._stats(actions, there))
            elif field.name == "stats_parsed" and self._struct is not None:
                texts = self._stats(actions, there).to_pylist()
                columns.append(self._struct.parse(texts))
            elif field.name == "partitionValues_parsed":
                columns.append(self._partition_values(actions))
            elif field.name in there:
                columns.append(_cast(actions.field(there[field.name]), field.type))
            else:
                columns.append(pa.nulls(len(actions), field.type))
        return pa.StructArray.from_arrays(columns, fields=_fields(self._types[name]))

    def _stats(self, actions: pa.StructArray, there: Mapping[str, int]) -> pa.Array:
        texts = actions.field("stats") if "stats" in there else pa.nulls(len(actions), pa.string())
        if "stats_parsed" not in there or not texts.null_count:
            return texts
        parsed = actions.field("stats_parsed").to_pylist()
        return pa.array(
            [text if text is not None else statistics_json(parsed[i]) for i, text in enumerate(texts.to_pylist())],
            pa.string(),
        )

    def _partition_values(self, actions: pa.StructArray) -> pa.Array:
        from .conform import physical_name

        kind = self._partition
        if kind is None:
            raise UnsupportedError("no partition columns")
        annotated = pa.schema(self._snapshot)
        mode: Any = self._snapshot.column_mapping
        rows = [dict(pairs or []) for pairs in actions.field("partitionValues").to_pylist()]
        columns = []
        for field in _fields(kind):
            name = physical_name(annotated.field(field.name), mode)
            texts = [row.get(name) for row in rows]
            values = pa.array(self._snapshot.parse_partition_values(field.name, texts))
            columns.append(values.cast(field.type))
        return pa.StructArray.from_arrays(columns, fields=_fields(kind))

    def _hint(self, size: int, more: dict[str, Any]) -> None:
        try:
            newest = json.loads(self._store.get(LAST_CHECKPOINT)).get("version", -1)
        except (NotFoundError, ValueError, AttributeError):
            newest = -1
        if isinstance(newest, int) and newest > self._version:
            return
        hint = {"version": self._version, "size": self._rows, **more}
        hint |= {"sizeInBytes": size, "numOfAddFiles": self._adds}
        self._store.put(LAST_CHECKPOINT, json.dumps(hint, separators=(",", ":")).encode())


class _ActionFile:
    """One Parquet file with a column for each action, of which a row has one."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, schema, compression="snappy", store_schema=False)

    def write(self, name: str, actions: pa.Array) -> None:
        if len(actions):
            columns = [actions if f.name == name else pa.nulls(len(actions), f.type) for f in self._schema]
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> bytes:
        self._writer.close()
        return bytes(self._sink.getvalue().to_pybytes())


def _of_part(actions: pa.StructArray, number: int, parts: int) -> pa.StructArray:
    paths = actions.field("path").to_pylist()
    return actions.filter(pa.array([zlib.crc32(path.encode()) % parts == number for path in paths]))


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)


def _fields(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(i) for i in range(kind.num_fields)]
