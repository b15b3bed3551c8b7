"""Text wherever a Delta table has text: what other programs take for the end of a line, of a string or of a path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import esker.delta
from esker.delta import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from esker.exceptions import EskerError

TEXTS = {
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "next line": "a\x85b",
    "vertical tab and form feed": "a\x0bb\x0cc",
    "separators of files and groups": "a\x1cb\x1dc\x1ed\x1fe",
    "carriage return": "a\rb\r\nc",
    "line feed": 'a\nb\n{"add":{}}\n',
    "nul": "a\x00b",
    "right to left": "\u202eabc\u200f\u2067d",
    "emoji": "\U0001f469\u200d\U0001f680\U0001f3fd",
    "percent": "100%25 %2F%",
    "quotes": "a'b\"c`d''e\"\"",
    "backslash": "a\\b\\n\\u2028",
    "bom and last of all": "\ufeffa\uffff\U0010ffff",
    "spaces": "  a\u00a0 ",
}
LARGE = "x\u2028" * 250_000
every_text = pytest.mark.parametrize("text", [*TEXTS.values(), LARGE], ids=[*TEXTS, "a megabyte"])
each_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
SURROGATE = "a\ud800b"


def _both(path: Path | str) -> tuple[DeltaTable, deltalake.DeltaTable]:
    ours, theirs = DeltaTable(path), deltalake.DeltaTable(path)
    assert ours.version() == theirs.version()
    assert len(ours.history()) == ours.version() + 1
    return ours, theirs


def _race(path: Path, rows: pa.Table) -> None:
    """An append that was computed before another one landed: it reads what that one put."""
    stale = DeltaTable(path)
    write_deltalake(path, rows, mode="append")
    write_deltalake(stale, rows, mode="append")


@every_text
@pytest.mark.parametrize("writer", [write_deltalake, deltalake.write_deltalake], ids=["esker", "deltalake"])
def test_values_are_read_by_both(text: str, writer: Any, tmp_path: Path) -> None:
    rows = pa.table({"s": [text, "z"], "n": [1, 2]})
    writer(str(tmp_path), rows)
    writer(str(tmp_path), rows, mode="append")
    ours, theirs = _both(tmp_path)
    assert ours.to_pyarrow_table().num_rows == 4
    assert set(ours.to_pyarrow_table()["s"].to_pylist()) == {text, "z"}
    assert set(theirs.to_pyarrow_table()["s"].to_pylist()) == {text, "z"}
    for where in ([("s", "=", text)], pa.compute.field("s") == text, "s = '" + text.replace("'", "''") + "'"):
        assert ours.to_pyarrow_table(filters=where).num_rows == 2
    _race(tmp_path, rows)
    assert DeltaTable(tmp_path).count() == 8
    DeltaTable(tmp_path).create_checkpoint()
    ours, theirs = _both(tmp_path)
    assert ours.to_pyarrow_table(filters=[("s", "=", text)]).num_rows == 4
    assert theirs.to_pyarrow_table().num_rows == 8


@each_text
@pytest.mark.parametrize("writer", [write_deltalake, deltalake.write_deltalake], ids=["esker", "deltalake"])
def test_partition_values_are_read_by_both(text: str, writer: Any, tmp_path: Path) -> None:
    rows = pa.table({"p": [text, "z", None], "n": [1, 2, 3]})
    writer(str(tmp_path), rows, partition_by=["p"])
    ours, theirs = _both(tmp_path)
    assert set(ours.to_pyarrow_table()["p"].to_pylist()) == {text, "z", None}
    assert set(theirs.to_pyarrow_table()["p"].to_pylist()) == {text, "z", None}
    _race(tmp_path, rows)
    where = "p = '" + text.replace("'", "''") + "'"
    write_deltalake(tmp_path, rows.slice(0, 1), mode="overwrite", predicate=where)
    ours, theirs = _both(tmp_path)
    assert ours.to_pyarrow_table().num_rows == theirs.to_pyarrow_table().num_rows == 7
    assert ours.history(1)[0]["operationParameters"]["predicate"] == where
    DeltaTable(tmp_path).create_checkpoint()
    ours, theirs = _both(tmp_path)
    assert ours.to_pyarrow_table(filters=[("p", "=", text)]).num_rows == 1
    assert {row["p"] for row in theirs.to_pyarrow_table().to_pylist()} == {text, "z", None}


def test_a_partition_value_may_be_longer_than_the_name_of_a_folder(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"p": [LARGE], "n": [1]}), partition_by=["p"])
    ours, theirs = _both(tmp_path)
    assert ours.to_pyarrow_table()["p"].to_pylist() == theirs.to_pyarrow_table()["p"].to_pylist() == [LARGE]


@each_text
def test_what_a_table_is_called_is_read_by_both(text: str, tmp_path: Path) -> None:
    rows = pa.table({"n": [1]})
    one, other = tmp_path / "one", tmp_path / "other"
    write_deltalake(one, rows, name=text, description=text, configuration={"my.key": text})
    deltalake.write_deltalake(str(other), rows, name=text, description=text)
    for path in (one, other):
        ours, theirs = _both(path)
        assert ours.metadata().name == theirs.metadata().name == text
        assert ours.metadata().description == theirs.metadata().description == text
        assert ours.metadata().configuration == theirs.metadata().configuration
        _race(path, rows)
    assert DeltaTable(one).metadata().configuration["my.key"] == text
    table = DeltaTable(one)
    table.alter.set_table_description(text * 2)
    table.create_checkpoint()
    ours, theirs = _both(one)
    assert ours.metadata().description == theirs.metadata().description == text * 2
    assert ours.metadata().configuration["my.key"] == text


@every_text
def test_applications_and_what_a_commit_says_are_read_by_both(text: str, tmp_path: Path) -> None:
    rows = pa.table({"n": [1]})
    for number in (1, 1, 2):
        write_deltalake(
            tmp_path,
            rows,
            mode="append",
            txn_app_id=text,
            txn_version=number,
            commit_properties=CommitProperties(custom_metadata={"why": text, text: "key"}),
        )
    stale = DeltaTable(tmp_path)
    write_deltalake(tmp_path, rows, mode="append", txn_app_id=text, txn_version=3)
    write_deltalake(stale, rows, mode="append", txn_app_id=text, txn_version=3)
    ours, theirs = _both(tmp_path)
    assert ours.version() == 2
    assert ours.transaction_version(text) == theirs.transaction_version(text) == 3
    said = ours.history()[-1]
    assert (said["why"], said[text]) == (text, "key")
    ours.create_checkpoint()
    ours, theirs = _both(tmp_path)
    assert ours.transaction_version(text) == theirs.transaction_version(text) == 3


@each_text
def test_columns_are_called_so_or_refused(text: str, tmp_path: Path) -> None:
    """Some letters need column mapping, in which deltalake does not write."""
    rows = pa.table({text: ["v"], "n": [1]})
    mapped = {"delta.columnMapping.mode": "name"}
    if "\x00" in text:
        with pytest.raises(ValueError, match="NUL"):
            write_deltalake(tmp_path / "mapped", rows, configuration=mapped)
        return
    write_deltalake(tmp_path / "mapped", rows, configuration=mapped)
    _race(tmp_path / "mapped", rows)
    found = DeltaTable(tmp_path / "mapped")
    assert found.to_pyarrow_table().column_names == [text, "n"]
    assert found.to_pyarrow_table(filters=[(text, "=", "v")]).num_rows == 3
    found.create_checkpoint()
    assert DeltaTable(tmp_path / "mapped").to_pyarrow_table(columns=[text])[text].to_pylist() == ["v"] * 3
    try:
        write_deltalake(tmp_path / "plain", rows, partition_by=[text])
    except ValueError:
        return
    ours, theirs = _both(tmp_path / "plain")
    assert ours.to_pyarrow_table().to_pylist() == theirs.to_pyarrow_table().to_pylist()


@each_text
@pytest.mark.parametrize("writer", [write_deltalake, deltalake.write_deltalake], ids=["esker", "deltalake"])
def test_tables_lie_in_folders_called_so(text: str, writer: Any, tmp_path: Path) -> None:
    if "\x00" in text:
        with pytest.raises((EskerError, ValueError)):
            write_deltalake(str(tmp_path / text), pa.table({"n": [1]}))
        return
    path = tmp_path / text.replace("/", "")
    # deltalake takes no folder with control characters, and finds none with a percent sign or a backslash.
    is_for_both = not any(letter in "%\\" or letter < " " for letter in text)
    rows = pa.table({"n": [1], "p": ["a"]})
    (writer if is_for_both else write_deltalake)(str(path), rows, partition_by=["p"])
    _race(path, rows)
    ours = DeltaTable(path)
    assert (ours.to_pyarrow_table().num_rows, len(ours.history())) == (3, 3)
    assert all(Path(uri).exists() for uri in ours.file_uris())
    if is_for_both:
        assert deltalake.DeltaTable(path).to_pyarrow_table().num_rows == 3


@each_text
def test_constraints_have_such_literals(text: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"s": [text]}))
    table = DeltaTable(tmp_path)
    quoted = text.replace("'", "''")
    try:
        table.alter.add_constraint({"only": f"s = '{quoted}'"})
    except NotImplementedError:
        # Spark reads a backslash in a literal otherwise.
        assert "\\" in text
        return
    write_deltalake(tmp_path, pa.table({"s": [text]}), mode="append")
    with pytest.raises(ValueError, match="only"):
        write_deltalake(tmp_path, pa.table({"s": ["other"]}), mode="append")
    _both(tmp_path)


def _writes(path: Path) -> dict[str, Any]:
    rows = pa.table({"n": [1]})
    said = CommitProperties(custom_metadata={"why": SURROGATE})

    def table() -> DeltaTable:
        return DeltaTable(path)

    return {
        "name": lambda: write_deltalake(path / "new", rows, name=SURROGATE),
        "description": lambda: write_deltalake(path / "new", rows, description=SURROGATE),
        "configuration": lambda: write_deltalake(path / "new", rows, configuration={"my.key": SURROGATE}),
        "key of the configuration": lambda: table().alter.set_table_properties({SURROGATE: "x"}, False),
        "application": lambda: write_deltalake(path, rows, mode="append", txn_app_id=SURROGATE, txn_version=1),
        "custom metadata": lambda: write_deltalake(path, rows, mode="append", commit_properties=said),
        "predicate": lambda: write_deltalake(path, rows, mode="overwrite", predicate=f"n = 1 and '{SURROGATE}' = 'a'"),
        "filter": lambda: table().to_pyarrow_table(filters=f"n = 1 and '{SURROGATE}' = 'a'"),
        "tuple": lambda: table().to_pyarrow_table(filters=[("n", "=", SURROGATE)]),
        "constraint": lambda: table().alter.add_constraint({"c": f"n > 0 and '{SURROGATE}' = 'a'"}),
        "new column": lambda: table().alter.add_columns(Field(SURROGATE, "long")),
        "comment": lambda: table().alter.set_column_metadata("n", {"comment": SURROGATE}),
        "created": lambda: DeltaTable.create(path / "new", Schema([Field("n", "long")]), description=SURROGATE),
        "columns": lambda: DeltaTable.create(path / "new", Schema([Field(SURROGATE, "long")])),
        "path": lambda: write_deltalake(f"memory://text-{SURROGATE}", rows),
    }


@pytest.mark.parametrize("place", _writes(Path()))
def test_a_lone_surrogate_is_refused(place: str, tmp_path: Path) -> None:
    """It has no form in UTF-8. What was refused has left nothing behind."""
    write_deltalake(tmp_path, pa.table({"n": [1]}))
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(ValueError, match=r"surrogate|UTF-8|utf-8"):
        _writes(tmp_path)[place]()
    assert sorted(tmp_path.rglob("*.parquet")) == before
    assert DeltaTable(tmp_path).version() == 0


DOLLARS = {
    "names in double quotes": ('$$a "b" c$$', 'a "b" c'),
    "quotes, comments and words": ("$$it's -- or /* x */ and$$", "it's -- or /* x */ and"),
    "a tag": ('$t$a $$ "b"$t$', 'a $$ "b"'),
    "nothing": ("$$$$", ""),
    "dollars in quotes": ("concat('$$', $$\"$$)", '$$"'),
}


@pytest.mark.parametrize(("sql", "text"), DOLLARS.values(), ids=DOLLARS.keys())
def test_a_text_in_dollars_is_what_it_says_in_every_verb(sql: str, text: str, tmp_path: Path) -> None:
    for library in (deltalake, esker.delta):
        path = tmp_path / library.__name__
        library.write_deltalake(path, pa.table({"id": [1, 2], "v": ["x", "y"], "a$b$c": ["q", "r"]}))
        library.DeltaTable(path).update({"v": sql}, predicate="a$b$c = $$q$$")
        source = pa.table({"id": [1, 2], "v": ["m", "m"], "a$b$c": ["m", "m"]})
        merger = library.DeltaTable(path).merge(source, f"t.id = s.id AND t.v = {sql}", "s", "t")
        merger.when_matched_update({"a$b$c": "'merged'"}).execute()
        want = [{"id": 1, "v": text, "a$b$c": "merged"}, {"id": 2, "v": "y", "a$b$c": "r"}]
        assert sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=lambda row: row["id"]) == want
        library.DeltaTable(path).delete(f"v = {sql}")
        assert DeltaTable(path).to_pyarrow_table().to_pylist() == want[1:]
