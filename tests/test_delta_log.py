"""Replay of Delta logs: checkpoints of every kind, broken ones, gaps, hints, hostile bytes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker import exceptions
from esker.delta import DeltaTable
from tests.delta_logs import CHECKPOINT, PROTOCOL, add, checkpoint, commit, metadata, remove

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def _names(table: DeltaTable) -> list[str]:
    return sorted(uri.rsplit("/", 1)[-1] for uri in table.file_uris())


def _five(path: Path) -> None:
    """Versions 0 to 4: each adds a file, version 3 removes that of version 1."""
    commit(path, 0, [PROTOCOL, metadata(), add("a")])
    commit(path, 1, [add("b")])
    commit(path, 2, [add("c")])
    commit(path, 3, [add("d"), remove("b")])
    commit(path, 4, [add("e")])


STATE = [PROTOCOL, metadata(), add("a"), add("b"), add("c"), {"txn": {"appId": "x", "version": 7}}]
"""What a checkpoint of version 2 holds."""


def test_a_metadata_without_a_schema_may_be_replaced_but_not_be_the_newest(tmp_path: Path) -> None:
    bare = {"metaData": {key: value for key, value in metadata()["metaData"].items() if key != "schemaString"}}
    commit(tmp_path, 0, [PROTOCOL, bare])
    with pytest.raises(exceptions.CorruptFileError, match="expected a schemaString"):
        DeltaTable(tmp_path)
    commit(tmp_path, 1, [metadata(), add("a")])
    assert _names(DeltaTable(tmp_path)) == ["a"]
    with pytest.raises(exceptions.CorruptFileError, match="version 0"):
        DeltaTable(tmp_path, 0)


def test_a_version_is_what_its_commits_leave(tmp_path: Path) -> None:
    _five(tmp_path)
    table = DeltaTable(tmp_path)
    assert (table.version(), _names(table)) == (4, ["a", "c", "d", "e"])
    for version, names in enumerate(["a", "ab", "abc", "acd", "acde"]):
        assert _names(DeltaTable(tmp_path, version)) == list(names)
    with pytest.raises(exceptions.NotFoundError, match="no version 5"):
        DeltaTable(tmp_path, 5)


@pytest.mark.parametrize("kind", ["classic", "parts", "v2 parquet", "v2 json", "sidecars", "sidecars json"])
def test_a_checkpoint_of_every_kind_is_read(tmp_path: Path, kind: str) -> None:
    _five(tmp_path)
    name = f"{2:020}.checkpoint"
    v2 = [{"checkpointMetadata": {"version": 2}}]
    sidecar = {"sidecar": {"path": "one.parquet", "sizeInBytes": 1, "modificationTime": 0}}
    others, adds = [action for action in STATE if "add" not in action], [action for action in STATE if "add" in action]
    if kind == "classic":
        checkpoint(tmp_path, f"{name}.parquet", STATE)
    elif kind == "parts":
        checkpoint(tmp_path, f"{name}.{1:010}.{2:010}.parquet", STATE[:3])
        checkpoint(tmp_path, f"{name}.{2:010}.{2:010}.parquet", STATE[3:])
    elif kind == "v2 parquet":
        checkpoint(tmp_path, f"{name}.{UUID}.parquet", [*v2, *STATE])
    elif kind == "v2 json":
        _lines(tmp_path / "_delta_log" / f"{name}.{UUID}.json", [*v2, *STATE])
    else:
        checkpoint(tmp_path, "_sidecars/one.parquet", adds)
        if kind == "sidecars":
            checkpoint(tmp_path, f"{name}.{UUID}.parquet", [*v2, *others, sidecar])
        else:
            _lines(tmp_path / "_delta_log" / f"{name}.{UUID}.json", [*v2, *others, sidecar])
    for version in (0, 1, 2):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    table = DeltaTable(tmp_path)
    assert table._snapshot.checkpoint_version == 2
    assert _names(table) == ["a", "c", "d", "e"]
    assert table.transaction_version("x") == 7
    assert _names(DeltaTable(tmp_path, 2)) == ["a", "b", "c"]
    with pytest.raises(exceptions.NotFoundError, match="cleaned up: the oldest that can be opened is 2"):
        DeltaTable(tmp_path, 1)


def _lines(path: Path, actions: list[Any]) -> None:
    path.write_text("\n".join(json.dumps(action) for action in actions))


@pytest.mark.parametrize("damage", ["zero bytes", "cut", "no metaData", "one part", "no sidecar", "gone"])
def test_a_broken_checkpoint_is_made_up_for_by_the_commits(tmp_path: Path, damage: str) -> None:
    _five(tmp_path)
    name = f"{2:020}.checkpoint"
    path = tmp_path / "_delta_log" / f"{name}.parquet"
    if damage == "no metaData":
        checkpoint(tmp_path, path.name, [PROTOCOL, add("wrong")])
    elif damage == "one part":
        checkpoint(tmp_path, f"{name}.{1:010}.{2:010}.parquet", [PROTOCOL, metadata(), add("wrong")])
    elif damage == "no sidecar":
        actions = [PROTOCOL, metadata(), {"sidecar": {"path": "gone.parquet", "sizeInBytes": 1, "modificationTime": 0}}]
        checkpoint(tmp_path, path.name, actions)
    elif damage != "gone":
        checkpoint(tmp_path, path.name, STATE)
        path.write_bytes(path.read_bytes()[: 0 if damage == "zero bytes" else 900])
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text('{"version":2,"size":6}')
    table = DeltaTable(tmp_path)
    assert _names(table) == ["a", "c", "d", "e"]
    assert table._snapshot.checkpoint_version is None
    # Without the first commit nothing makes up for it, and the files that are there are never taken for all.
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(exceptions.CorruptFileError, match="version 0"):
        DeltaTable(tmp_path)


def test_a_broken_checkpoint_is_made_up_for_by_an_older_one(tmp_path: Path) -> None:
    _five(tmp_path)
    checkpoint(tmp_path, f"{2:020}.checkpoint.parquet", STATE)
    (tmp_path / "_delta_log" / f"{3:020}.checkpoint.parquet").write_bytes(b"PAR1")
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    table = DeltaTable(tmp_path)
    assert (_names(table), table._snapshot.checkpoint_version) == (["a", "c", "d", "e"], 2)


def test_a_gap_is_an_error_that_names_the_version(tmp_path: Path) -> None:
    _five(tmp_path)
    (tmp_path / "_delta_log" / f"{3:020}.json").unlink()
    with pytest.raises(exceptions.CorruptFileError, match=r"version 3.*version 4 cannot be replayed") as caught:
        DeltaTable(tmp_path)
    assert caught.value.path == f"_delta_log/{3:020}.json"
    assert _names(DeltaTable(tmp_path, 2)) == ["a", "b", "c"]


@pytest.mark.parametrize("hint", ["", "{", "[]", '{"version":"x"}', '{"version":1}', '{"version":-1}', "\xff"])
def test_a_hint_that_says_nothing_does_no_harm(tmp_path: Path, hint: str) -> None:
    _five(tmp_path)
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text(hint, encoding="latin-1")
    assert DeltaTable(tmp_path).version() == 4


def test_newest_entries_that_are_lost_are_told_by_hint_and_checksum(tmp_path: Path) -> None:
    _five(tmp_path)
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text('{"version":7,"size":1}')
    with pytest.raises(exceptions.CorruptFileError, match="newer entries are lost"):
        DeltaTable(tmp_path)
    (tmp_path / "_delta_log" / "_last_checkpoint").unlink()
    (tmp_path / "_delta_log" / f"{5:020}.crc").write_text("{}")
    with pytest.raises(exceptions.CorruptFileError, match="newer entries are lost"):
        DeltaTable(tmp_path)


def test_an_entry_that_was_cut_at_a_lines_end_is_told_by_the_checksum(tmp_path: Path) -> None:
    _five(tmp_path)
    checksum = tmp_path / "_delta_log" / f"{4:020}.crc"
    checksum.write_text('{"numFiles":4,"tableSizeBytes":4,"numMetadata":1}')
    assert DeltaTable(tmp_path).version() == 4
    commit(tmp_path, 4, [])
    with pytest.raises(exceptions.CorruptFileError, match="4 files, found 3"):
        DeltaTable(tmp_path)


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        (["{"], "line 1"),
        (["[]"], "line 1"),
        (["3"], "expected a JSON object"),
        ([add("a"), add("a")], "line 2: expected one action for file a"),
        ([add("x%20y"), remove("x y")], "line 2"),
        ([PROTOCOL, PROTOCOL], "the protocol"),
        ([metadata(), metadata()], "metadata"),
        ([{"txn": {"appId": "a", "version": 1}}, {"txn": {"appId": "a", "version": 1}}], "application a"),
        ([{"add": {"partitionValues": {}}}], "missing field `path`"),
        ([{"metaData": {"schemaString": "{"}}], "schema as JSON"),
        ([{"metaData": {"schemaString": '{"type":"struct"}'}}], "fields"),
    ],
)
def test_what_is_no_entry_is_an_error_that_names_version_and_file(
    tmp_path: Path, actions: list[Any], words: str
) -> None:
    commit(tmp_path, 0, [PROTOCOL, metadata()])
    commit(tmp_path, 1, actions)
    with pytest.raises(exceptions.CorruptFileError, match="version 1") as caught:
        DeltaTable(tmp_path)
    assert words in str(caught.value)
    assert caught.value.path == f"_delta_log/{1:020}.json"


def test_what_is_not_known_is_read_past(tmp_path: Path) -> None:
    commit(
        tmp_path,
        0,
        [
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"], "new": 1}},
            metadata(future={"deep": [[[]]]}),
            {"commitInfo": [1, {"a": None}]},
            {"brandNew": {"x": 1}},
            add("a", baseRowId=3, tags={"k": "v"}, clusteringProvider="liquid", future=[1]),
            "",
            "\r",
        ],
    )
    assert _names(DeltaTable(tmp_path)) == ["a"]


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        ({"minReaderVersion": 4, "minWriterVersion": 8}, "reader version 4.*upgrade"),
        (
            {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["variantType", "x"]},
            "reader features x,.*upgrade",
        ),
        (
            {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["catalogManaged", "x"]},
            "catalogManaged, x",
        ),
    ],
)
def test_what_readers_must_know_and_we_do_not_is_refused_by_name(
    tmp_path: Path, protocol: dict[str, Any], words: str
) -> None:
    commit(tmp_path, 0, [{"protocol": protocol}, metadata()])
    with pytest.raises(exceptions.UnsupportedError, match=words):
        DeltaTable(tmp_path)


def test_other_formats_than_parquet_are_refused(tmp_path: Path) -> None:
    commit(tmp_path, 0, [PROTOCOL, metadata(format={"provider": "json", "options": {}})])
    with pytest.raises(exceptions.UnsupportedError, match="json"):
        DeltaTable(tmp_path)


@pytest.mark.parametrize(
    "spelling", ["x%20y", "{root}/x%20y", "file:{root}/x%20y", "file://{root}/x%20y", "file://localhost{root}/x%20y"]
)
def test_a_file_is_removed_under_every_spelling_of_its_path(tmp_path: Path, spelling: str) -> None:
    commit(tmp_path, 0, [PROTOCOL, metadata(), add("x y")])
    assert DeltaTable(tmp_path).file_uris() == [f"{tmp_path}/x y"]
    commit(tmp_path, 1, [remove(spelling.format(root=tmp_path))])
    assert DeltaTable(tmp_path).file_uris() == []


def test_a_refresh_reads_only_what_is_new(tmp_path: Path) -> None:
    _five(tmp_path)
    table = DeltaTable(tmp_path)
    # The log may be cleaned up behind it.
    for version in range(5):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    commit(tmp_path, 5, [add("f"), remove("a")])
    commit(tmp_path, 6, [add("a"), {"txn": {"appId": "y", "version": 1}}])
    table.update_incremental()
    assert (table.version(), _names(table)) == (6, ["a", "c", "d", "e", "f"])
    assert table.transaction_version("y") == 1
    table.update_incremental()
    assert table.version() == 6


def test_many_refreshes_are_one_replay(tmp_path: Path) -> None:
    commit(tmp_path, 0, [PROTOCOL, metadata(), add("0")])
    table = DeltaTable(tmp_path)
    draw = random.Random(3)
    for version in range(1, 150):
        actions = [add(str(version))]
        if draw.random() < 0.5:
            actions.append(remove(str(draw.randrange(version))))
        commit(tmp_path, version, actions)
        table.update_incremental()
    assert table.version() == 149
    assert _names(table) == _names(DeltaTable(tmp_path))


def _outcome(path: Path) -> list[str] | None:
    try:
        table = DeltaTable(path)
        table.get_add_actions()
        return _names(table)
    except exceptions.EskerError:
        return None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_log_with_flipped_bytes_is_a_table_or_an_error(tmp_path: Path, data: st.DataObject) -> None:
    _five(tmp_path)
    good = checkpoint(tmp_path, f"{2:020}.checkpoint.parquet", STATE)
    victim = data.draw(st.sampled_from([good, tmp_path / "_delta_log" / f"{3:020}.json"]))
    content = bytearray(victim.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    victim.write_bytes(content)
    _outcome(tmp_path)


def test_a_checkpoint_cut_anywhere_never_gives_other_files(tmp_path: Path) -> None:
    _five(tmp_path)
    path = checkpoint(tmp_path, f"{2:020}.checkpoint.parquet", STATE)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 97):
        path.write_bytes(whole[:cut])
        assert _outcome(tmp_path) == ["a", "c", "d", "e"]
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    for cut in range(0, len(whole), 97):
        path.write_bytes(whole[:cut])
        assert _outcome(tmp_path) is None


def test_columns_of_a_checkpoint_are_found_by_name(tmp_path: Path) -> None:
    _five(tmp_path)
    checkpoint(tmp_path, f"{2:020}.checkpoint.parquet", STATE, schema=pa.schema(list(CHECKPOINT)[::-1]))
    assert DeltaTable(tmp_path)._snapshot.checkpoint_version == 2


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_replay_is_a_plain_model_of_it(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("t")
    alive: set[tuple[str, str | None]] = set()
    txns: dict[str, int] = {}
    opened: DeltaTable | None = None
    for version in range(data.draw(st.integers(1, 8))):
        actions: list[Any] = [PROTOCOL, metadata()] if version == 0 else []
        touched = data.draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4))
        for name in touched:
            vector = data.draw(st.sampled_from([None, "x", "y"]))
            if data.draw(st.booleans()):
                # A file comes back, or with other deleted rows: then the one before it goes.
                for other in [key for key in alive if key[0] == name and key[1] != vector]:
                    actions.append(remove(name, **_vector(other[1])))
                    alive.remove(other)
                actions.append(add(name, **_vector(vector)))
                alive.add((name, vector))
            else:
                actions.append(remove(name, **_vector(vector)))
                alive.discard((name, vector))
        app = data.draw(st.sampled_from([None, "p", "q"]))
        if app is not None:
            txns[app] = data.draw(st.integers(0, 5))
            actions.append({"txn": {"appId": app, "version": txns[app]}})
        commit(path, version, data.draw(st.permutations(actions)))
        if data.draw(st.booleans()) and not any(vector for _, vector in alive):
            state = [PROTOCOL, metadata(), *(add(name) for name, _ in alive)]
            state += [{"txn": {"appId": app, "version": number}} for app, number in txns.items()]
            checkpoint(path, f"{version:020}.checkpoint.parquet", state)
        if opened is None:
            opened = DeltaTable(path)
        elif data.draw(st.booleans()):
            opened.update_incremental()
    opened = opened or DeltaTable(path)
    opened.update_incremental()
    for table in (opened, DeltaTable(path)):
        assert _names(table) == sorted(name for name, _ in alive)
        assert {app: table.transaction_version(app) for app in "pq"} == {app: txns.get(app) for app in "pq"}


def _vector(place: str | None) -> dict[str, Any]:
    if place is None:
        return {}
    fields = {"storageType": "p", "pathOrInlineDv": f"/{place}", "offset": 1, "sizeInBytes": 1, "cardinality": 1}
    return {"deletionVector": fields}


@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_a_partition_value_that_cannot_be_read_names_the_file_and_its_entry(
    tmp_path: Path, from_checkpoint: bool
) -> None:
    schema = {"type": "struct", "fields": [{"name": "n", "type": "integer", "nullable": True, "metadata": {}}]}
    commit(tmp_path, 0, [PROTOCOL, metadata(schemaString=json.dumps(schema), partitionColumns=["n"])])
    commit(tmp_path, 1, [add("n=1/a", partitionValues={"n": "1"})])
    commit(tmp_path, 2, [add("n=x/b", partitionValues={"n": "x"}), add("n=2/c", partitionValues={"n": "2"})])
    if from_checkpoint:
        DeltaTable(tmp_path).create_checkpoint()
    with pytest.raises(exceptions.CorruptFileError) as raised:
        DeltaTable(tmp_path).get_add_actions()
    message = str(raised.value)
    assert "partition column n" in message
    assert "'x'" in message
    assert "for file n=x/b" in message
    assert f"{2:020}." in message
