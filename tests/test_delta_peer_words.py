"""What programs that were written for deltalake look for: its sentences in messages, commit arguments by position."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker.delta
from esker.delta import CommitProperties, DeltaTable, Field, TableFeatures, WriterProperties, write_deltalake
from esker.delta.exceptions import AppendOnlyError, CommitFailedError, DeltaError, DeltaProtocolError
from esker.exceptions import CommitConflictError

ROWS = pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int8())})
WHO = {"userName": "ann"}
NUMBERS = ("num_added_files", "num_removed_files", "num_added_rows")
GENERATED = Field("g", "long", metadata={"delta.generationExpression": "5"})
CALLS: list[tuple[str, Callable[[Any, Any, Path], object]]] = [
    ("cannot exceed 255 characters", lambda m, t, p: t.alter.set_table_name("x" * 256)),
    ("cannot exceed 4000 characters", lambda m, t, p: t.alter.set_table_description("x" * 4001)),
    (
        "Table feature enables writer feature, but min_writer is not v7",
        lambda m, t, p: t.alter.add_feature(m.TableFeatures.DomainMetadata),
    ),
    (
        "Table feature enables reader and writer feature, but reader is not v3, and writer not v7",
        lambda m, t, p: t.alter.add_feature(m.TableFeatures.DeletionVectors),
    ),
    (
        "Cannot cast schema, number of fields does not match",
        lambda m, t, p: m.write_deltalake(p, ROWS.append_column("y", [[1, 2]]), mode="append"),
    ),
    (
        "Specified table partitioning does not match table partitioning",
        lambda m, t, p: m.write_deltalake(p, ROWS, mode="append", partition_by=["n"]),
    ),
    (
        "Cannot cast string 'hello' to value of Int8 type",
        lambda m, t, p: m.write_deltalake(p, pa.table({"id": [1], "n": ["hello"]}), mode="append"),
    ),
    (
        "Cast error: Can't cast value 1000 to type Int8",
        lambda m, t, p: m.write_deltalake(p, pa.table({"id": [1], "n": [1000]}), mode="append"),
    ),
    (
        "Invalid data found:",
        lambda m, t, p: m.write_deltalake(p, ROWS, mode="overwrite", predicate="id = 1"),
    ),
    (
        "No field named p999.",
        lambda m, t, p: m.write_deltalake(p, ROWS, mode="overwrite", predicate="p999 = 1"),
    ),
]


@pytest.mark.parametrize(("words", "call"), CALLS, ids=[words for words, _ in CALLS])
def test_messages_have_deltalakes_words(tmp_path: Path, words: str, call: Callable[[Any, Any, Path], object]) -> None:
    import esker.delta

    for module in (deltalake, esker.delta):
        path = tmp_path / module.__name__
        write_deltalake(path, ROWS)
        before = sorted(path.rglob("*"))
        with pytest.raises(Exception) as raised:  # noqa: PT011
            call(module, module.DeltaTable(path), path)
        assert words in str(raised.value)
        if module is esker.delta:
            assert isinstance(raised.value, DeltaError)
            assert sorted(path.rglob("*")) == before


def test_an_append_only_table_raises_what_deltalake_raises(tmp_path: Path) -> None:
    words = "The transaction includes Remove action with data change but Delta table is append-only"
    write_deltalake(tmp_path, ROWS, configuration={"delta.appendOnly": "true"})
    with pytest.raises(deltalake.exceptions.CommitFailedError, match=words):
        deltalake.write_deltalake(tmp_path, ROWS, mode="overwrite")
    for call in (
        lambda: write_deltalake(tmp_path, ROWS, mode="overwrite"),
        lambda: DeltaTable(tmp_path).delete("id = 1"),
        lambda: DeltaTable(tmp_path).update({"n": "1"}),
        lambda: DeltaTable.create(tmp_path, ROWS.schema, mode="overwrite"),
    ):
        with pytest.raises(AppendOnlyError, match=words) as raised:
            call()
        assert isinstance(raised.value, CommitFailedError)
        assert isinstance(raised.value, DeltaProtocolError)
        assert raised.value.uri == str(tmp_path)
    assert issubclass(CommitConflictError, CommitFailedError)


POSITIONAL: list[tuple[str, Callable[[Any, Any], object]]] = [
    ("set_table_name", lambda t, c: t.alter.set_table_name("name", c)),
    ("set_table_description", lambda t, c: t.alter.set_table_description("text", c)),
    ("set_table_properties", lambda t, c: t.alter.set_table_properties({"delta.appendOnly": "true"}, True, c)),
    ("set_column_metadata", lambda t, c: t.alter.set_column_metadata("id", {"k": "v"}, c)),
    ("add_columns", lambda t, c: t.alter.add_columns(Field("z", "long"), c)),
    ("add_constraint", lambda t, c: t.alter.add_constraint({"c": "id > 0"}, None, c)),
    ("add_feature", lambda t, c: t.alter.add_feature(TableFeatures.AppendOnly, True, c)),
    ("delete", lambda t, c: t.delete("id = 1", None, None, c)),
    ("update", lambda t, c: t.update({"n": "1"}, None, None, None, True, None, c)),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "call"), POSITIONAL, ids=[name for name, _ in POSITIONAL])
def test_commit_arguments_by_position_are_taken_with_a_warning(
    tmp_path: Path, name: str, call: Callable[[Any, Any], object]
) -> None:
    write_deltalake(tmp_path, ROWS)
    table = DeltaTable(tmp_path)
    with pytest.warns(DeprecationWarning, match=rf"positionally to {name}\(\) is deprecated") as warned:
        call(table, CommitProperties(WHO))
    assert [Path(one.filename).name for one in warned] == [Path(__file__).name]
    assert table.history(1)[0]["userName"] == "ann"


def test_arguments_of_create_by_position(tmp_path: Path) -> None:
    commit: Any = CommitProperties(WHO)
    make: Any = DeltaTable.create
    given: list[Any] = [ROWS.schema, "error", None, None, None, None, None, commit]
    with pytest.warns(DeprecationWarning, match="positionally to create"):
        assert make(tmp_path, *given).history(1)[0]["userName"] == "ann"
    with (
        pytest.warns(DeprecationWarning, match="positionally"),
        pytest.raises(TypeError, match="multiple values for 'commit_properties'"),
    ):
        make(tmp_path / "b", *given, commit_properties=commit)
    with pytest.raises(TypeError, match="at most 3 positional"):
        make(tmp_path / "b", *given, None, True, 1)


def test_a_raw_table_tells_its_url_as_deltalakes_does(tmp_path: Path) -> None:
    path = tmp_path / "a b"
    write_deltalake(path, ROWS)
    ours, theirs = DeltaTable(path), deltalake.DeltaTable(path)
    assert ours._table.table_uri() == theirs._table.table_uri()
    assert ours._table.version() == theirs._table.version() == 0


def test_a_raw_table_tells_the_sizes_of_files_as_deltalakes_does(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "p": ["x y", "ü%", "a/b=c", None]})
    deltalake.write_deltalake(tmp_path, rows, partition_by=["p"])
    write_deltalake(tmp_path, rows, mode="append")
    DeltaTable(tmp_path).delete("id = 2")
    ours, theirs = DeltaTable(tmp_path), deltalake.DeltaTable(tmp_path)
    assert ours._table.get_add_file_sizes() == theirs._table.get_add_file_sizes()
    assert {f"{tmp_path}/{path}" for path in ours._table.get_add_file_sizes()} == set(ours.file_uris())


def test_a_write_tells_its_numbers_as_deltalakes_does(tmp_path: Path) -> None:
    told = []
    for library in (esker.delta, deltalake):
        uri = tmp_path / library.__name__
        library.write_deltalake(uri, ROWS, partition_by=["id"])
        library.write_deltalake(uri, ROWS, mode="append")
        library.write_deltalake(uri, ROWS.slice(0, 1), mode="overwrite", predicate="id = 1")
        library.write_deltalake(uri, ROWS.slice(0, 1), mode="overwrite")
        found = [each["operationMetrics"] for each in library.DeltaTable(uri).history()]
        told.append([{name: each[name] for name in NUMBERS} for each in found])
    assert told[0] == told[1]
    assert told[0][0] == {"num_added_files": 1, "num_removed_files": 3, "num_added_rows": 1}


@pytest.mark.parametrize("codec", ["GZIP", "brotli", "ZSTD", "snappy", None])
def test_codecs_tell_their_level_as_deltalakes_do(codec: Any) -> None:
    assert WriterProperties(compression=codec).compression == deltalake.WriterProperties(compression=codec).compression
