"""Whatever goes wrong: one clear error of our own tree, that names what it is about."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from esker import exceptions
from esker.delta import DeltaTable
from esker.exceptions import (
    AlreadyExistsError,
    CorruptFileError,
    EskerError,
    InvalidArgumentError,
    NotFoundError,
    UnsupportedError,
)
from esker.repo import Repository
from tests.samples import people


@pytest.fixture
def table(uri: str) -> str:
    esker.write_dataset(people(2000), uri)
    return uri


def _data_file(uri: str) -> Path:
    return next(Path(uri, "data").iterdir())


@pytest.mark.parametrize("make", ["nothing", "empty folder", "foreign folder", "file"])
def test_a_path_that_is_no_table(make: str, tmp_path: Path) -> None:
    path = tmp_path / "here"
    if make.endswith("folder"):
        path.mkdir()
    if make == "foreign folder":
        (path / "part-0.parquet").write_bytes(b"PAR1")
    if make == "file":
        path.write_text("no table")
    with pytest.raises(EskerError) as caught:
        esker.dataset(path)
    if make != "file":
        assert isinstance(caught.value, NotFoundError)
    assert isinstance(caught.value, ValueError), "as in pylance"
    assert isinstance(caught.value, OSError) or make == "file"
    assert str(path) in str(caught.value)


def test_what_lies_there_instead_is_named_with_the_call_that_opens_it(tmp_path: Path) -> None:
    delta, repository, table = (str(tmp_path / name) for name in ("delta", "repository", "table"))
    deltalake.write_deltalake(delta, pa.table({"a": [1]}))
    Repository.create(repository)
    esker.write_dataset(pa.table({"a": [1]}), table)
    calls: list[Callable[[str], Any]] = [esker.dataset, DeltaTable, Repository]
    said = {
        delta: "a Delta table; open it with esker.delta.DeltaTable",
        repository: "a repository; open it with esker.repo.Repository",
        table: "a Lance table; open it with esker.dataset",
    }
    for place, own in zip((table, delta, repository), calls, strict=True):
        assert own(place) is not None
        for call in calls:
            if call is own:
                continue
            with pytest.raises(NotFoundError, match=f"found {re.escape(said[place])}$") as caught:
                call(place)
            assert caught.value.uri == place
    for call in (esker.dataset, DeltaTable):
        with pytest.raises(NotFoundError, match="no version 7|7"):
            call(table if call is esker.dataset else delta, version=7)
    assert esker.write_dataset(pa.table({"a": [1]}), delta).version == 1, "a folder may hold both"
    assert esker.dataset(delta).count_rows() == DeltaTable(delta).count() == 1


def test_a_version_that_is_not_there(table: str) -> None:
    for open_version in (lambda: esker.dataset(table, version=9), lambda: esker.dataset(table).checkout_version(0)):
        with pytest.raises(NotFoundError, match="no version") as caught:
            open_version()
        assert caught.value.version in (9, 0)


def test_creating_over_a_table(table: str) -> None:
    with pytest.raises(AlreadyExistsError, match="exists already") as caught:
        esker.write_dataset(people(1), table)
    assert isinstance(caught.value, FileExistsError)
    assert caught.value.uri == table


def test_a_wrong_mode(uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match="mode.*upsert"):
        esker.write_dataset(people(1), uri, mode="upsert")
    assert not Path(uri).exists()


@pytest.mark.parametrize("filter", ["id >", "id = ", "nope > 1", "id + 1", "id > 'x' and", "place.nope = 1", ""])
def test_a_filter_that_means_nothing(filter: str, table: str) -> None:
    dataset = esker.dataset(table)
    for run in (dataset.to_table, dataset.count_rows):
        with pytest.raises(InvalidArgumentError):
            run(filter=filter)


def test_a_pyarrow_filter_that_does_not_fit(table: str) -> None:
    dataset = esker.dataset(table)
    with pytest.raises(InvalidArgumentError, match="nope"):
        dataset.to_table(filter=pc.field("nope") > 1)
    with pytest.raises(InvalidArgumentError, match="cannot infer common argument type"):
        dataset.to_table(filter=pc.field("vector") > 1)
    assert dataset.count_rows(pc.field("vector").is_null()) == dataset.count_rows("vector IS NULL")
    with pytest.raises(TypeError, match="filter"):
        dataset.to_table(filter=3)


@pytest.mark.parametrize("columns", [["nope"], ["id", "nope"], ["place.nope"], ["id.x"], {"n": "nope + 1"}])
def test_a_column_that_does_not_exist(columns: Any, table: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"nope|id\.x"):
        esker.dataset(table).to_table(columns=columns)


def test_arguments_out_of_range(table: str) -> None:
    dataset = esker.dataset(table)
    for options in ({"limit": -1}, {"offset": -1}, {"batch_size": 0}, {"columns": ["id", "id"]}, {"colums": ["id"]}):
        with pytest.raises(InvalidArgumentError):
            dataset.scanner(**options)
    wrong: list[dict[str, Any]] = [{"max_rows_per_file": 0}, {"memory_limit": -1}, {"max_retries": -1}]
    for arguments in wrong:
        with pytest.raises(InvalidArgumentError):
            esker.write_dataset(people(1), table, mode="append", **arguments)
    with pytest.raises(UnsupportedError, match="table_id"):
        esker.write_dataset(people(1), table, mode="append", table_id=["t"])  # type: ignore[call-arg]


def test_a_missing_data_file(table: str) -> None:
    path = _data_file(table)
    path.unlink()
    dataset = esker.dataset(table)
    for read in (dataset.to_table, lambda: list(dataset.to_batches()), lambda: dataset.take([1])):
        with pytest.raises(NotFoundError, match=path.name):
            read()


@pytest.mark.parametrize("keep", [0, 10, 39, 100, -1, -40, -200])
def test_a_truncated_data_file(keep: int, table: str) -> None:
    path = _data_file(table)
    path.write_bytes(path.read_bytes()[:keep])
    dataset = esker.dataset(table)
    for read in (dataset.to_table, lambda: dataset.scanner().to_reader().read_all(), lambda: dataset.take([1])):
        with pytest.raises(CorruptFileError, match=path.name):
            read()


def test_a_foreign_data_file(table: str) -> None:
    path = _data_file(table)
    size = path.stat().st_size
    for data in (b"PAR1" * (size // 4) + b"x" * (size % 4), bytes(size), b"LANC" * (size // 4) + b"x" * (size % 4)):
        path.write_bytes(data)
        with pytest.raises(EskerError, match=path.name):
            esker.dataset(table).to_table()


def test_a_damaged_manifest(table: str) -> None:
    path = next(Path(table, "_versions").glob("*.manifest"))
    whole = path.read_bytes()
    for keep in (0, 3, 15, 16, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:keep])
        with pytest.raises(CorruptFileError, match="manifest") as caught:
            esker.dataset(table)
        assert "_versions/" in (caught.value.path or "")
    path.write_bytes(b"PAR1" * 100)
    with pytest.raises(CorruptFileError):
        esker.dataset(table)


def test_flipped_bytes_end_in_rows_or_in_an_error_of_ours(table: str) -> None:
    path = _data_file(table)
    whole = path.read_bytes()
    for position in [*range(0, len(whole), max(1, len(whole) // 60)), *range(len(whole) - 60, len(whole))]:
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            esker.dataset(table).to_table()
        except EskerError as error:
            named = path.name in str(error)
        else:
            named = True
        assert named


def test_unknown_feature_flags_are_refused_and_named(table: str) -> None:
    # Bit 64 (data overlay files): a one-byte varint behind the tag of field 9 (reader) or 10 (writer).
    from esker._native.table import Manifest

    path = next(Path(table, "_versions").glob("*.manifest"))
    whole = path.read_bytes()
    position = int.from_bytes(whole[-16:-8], "little")
    length = int.from_bytes(whole[position : position + 4], "little")
    body = whole[position + 4 : position + 4 + length]
    for tag, verb in ((b"\x48", "read"), (b"\x50", "write")):
        message = body + tag + b"\x40"
        data = whole[:position] + len(message).to_bytes(4, "little") + message + whole[-16:]
        path.write_bytes(data)
        manifest = Manifest.decode(data, "m")
        if verb == "read":
            assert manifest.reader_feature_flags == 64
            with pytest.raises(UnsupportedError, match="64"):
                esker.dataset(table)
        else:
            assert manifest.writer_feature_flags == 64
            assert esker.dataset(table).count_rows() == 2000
        with pytest.raises(UnsupportedError, match="64"):
            esker.write_dataset(people(1), table, mode="append")


def test_an_error_of_the_users_iterator_comes_back_as_it_is(uri: str) -> None:
    class OwnError(Exception):
        pass

    def batches() -> Iterator[pa.RecordBatch]:
        yield people(10).to_batches()[0]
        raise OwnError("mine")

    with pytest.raises(OwnError, match="mine"):
        esker.write_dataset(batches(), uri, schema=people(0).schema)
    assert not Path(uri, "_versions").exists()


def test_inputs_that_hold_no_columns(uri: str) -> None:
    with pytest.raises(TypeError, match="found int"):
        esker.write_dataset(5, uri)
    with pytest.raises(InvalidArgumentError, match="schema"):
        esker.write_dataset(iter(people(1).to_batches()), uri)
    with pytest.raises(TypeError, match="uri"):
        esker.write_dataset(people(1), 5)  # type: ignore[arg-type]


def test_schemes_without_a_store_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="gopher"):
        esker.dataset("gopher://hole")


def _all_errors() -> list[type[EskerError]]:
    return [getattr(exceptions, name) for name in exceptions.__all__]


@pytest.mark.parametrize("error", _all_errors(), ids=lambda error: error.__name__)
def test_errors_carry_facts_and_pickle(error: type[EskerError]) -> None:
    made = error("expected a, found b", path="p", version=3)
    for one in (made, pickle.loads(pickle.dumps(made))):
        assert (str(one), one.path, one.version, one.column) == ("expected a, found b", "p", 3, None)
        assert one.kind == error.kind
    with pytest.raises(AttributeError):
        made.nonsense  # noqa: B018


def test_kinds_are_unique() -> None:
    kinds = [error.kind for error in _all_errors()]
    assert len(set(kinds)) == len(kinds)


def _nulls(uri: str) -> Any:
    return lance.write_dataset(pa.table({"n": [1, None]}), f"{uri}-nulls", mode="overwrite")


Raises: dict[str, tuple[Callable[[str], object], type[Exception]]] = {
    "missing": (lambda uri: lance.dataset(uri + "-none"), ValueError),
    "exists": (lambda uri: lance.write_dataset(people(1), uri), OSError),
    "filter": (lambda uri: lance.dataset(uri).to_table(filter="id >"), ValueError),
    "column": (lambda uri: lance.dataset(uri).to_table(columns=["nope"]), ValueError),
    "schema": (lambda uri: lance.write_dataset(pa.table({"x": [1]}), uri, mode="append"), OSError),
    "version": (lambda uri: lance.dataset(uri).checkout_version(77), OSError),
    "nulls": (lambda uri: _nulls(uri).alter_columns({"path": "n", "nullable": False}), OSError),
    "key": (lambda uri: lance.dataset(uri).merge(pa.table({"x": [1], "y": [1]}), "id", "nope"), OSError),
    "no versions": (lambda uri: lance.dataset(uri).cleanup_old_versions(versions=[]), OSError),
    "no transactions": (lambda uri: lance.LanceDataset.commit_batch(uri, []), OSError),
    "base": (lambda uri: lance.write_dataset(people(1), uri, mode="append", target_bases=["nope"]), OSError),
    "row": (lambda uri: lance.dataset(uri).take([9999]), OSError),
    "half a row": (lambda uri: lance.dataset(uri).take([1.5]), TypeError),
    "null row": (lambda uri: lance.dataset(uri).take([None]), TypeError),
    "no rows": (lambda uri: lance.dataset(uri).take(None), TypeError),
    "option": (lambda uri: lance.dataset(uri).to_table(bogus=1), TypeError),
    "option of a fragment": (lambda uri: lance.dataset(uri).get_fragments()[0].to_table(bogus=1), TypeError),
    "option of a scan": (lambda uri: lance.dataset(uri).scanner(bogus=1), TypeError),
}


@pytest.mark.parametrize("case", Raises)
def test_handlers_written_for_pylance_still_catch(case: str, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, builtin = Raises[case]
    with pytest.raises(builtin):
        run(table)
    monkeypatch.setitem(globals(), "lance", esker)
    with pytest.raises(EskerError) as caught:
        run(table)
    assert isinstance(caught.value, builtin)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), type(caught.value))


RUST = Path(__file__).parents[1] / "rust"


@pytest.mark.skipif(not RUST.is_dir(), reason="the Rust sources are not beside the tests")
def test_kinds_and_classes_are_the_same_in_rust_and_python() -> None:
    import re

    classes = {error.__name__ for error in _all_errors()}
    named = set(re.findall(r'Raised::new\("(\w+)"\)', (RUST / "python/src/error.rs").read_text()))
    assert named, "the file that maps errors of Rust has moved"
    assert named <= classes
    kinds = {error.kind for error in _all_errors()}
    for source in sorted(RUST.glob("*/src/error.rs")):
        body = re.search(r"fn kind\(&self\)[^{]*\{(.*?)\n    \}", source.read_text(), re.DOTALL)
        if body:
            found = set(re.findall(r'=> "(\w+)"', body.group(1)))
            assert found
            assert found <= kinds, source
