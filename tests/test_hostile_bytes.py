"""Bytes that somebody made to do harm: paths that leave the table, messages that nest or claim without end.

Whatever they say: a clear error, no other file read, and no more memory or time than their own size pays for.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import esker
from esker._native.table import DataFile, Fragment, Manifest, Transaction
from esker.exceptions import CorruptFileError, EskerError, UnsupportedError
from esker.file import LanceFileReader, LanceFileWriter
from esker.fragment import FragmentMetadata
from tests.peaks import PEAK


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _record(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _nested(numbers: list[int], depth: int) -> bytes:
    """Messages within messages, by the fields `numbers` in turn; built outwards, in time linear in the depth."""
    heads: list[bytes] = []
    size = 0
    for level in range(depth):
        head = _varint(numbers[-1 - level % len(numbers)] << 3 | 2) + _varint(size)
        heads.append(head)
        size += len(head)
    return b"".join(reversed(heads))


def _groups(number: int, depth: int) -> bytes:
    return _varint(number << 3 | 3) * depth + _varint(number << 3 | 4) * depth


def _framed(message: bytes) -> bytes:
    """A manifest file."""
    return len(message).to_bytes(4, "little") + message + (0).to_bytes(8, "little") + b"\0\0\2\0LANC"


# As long as the paths that they replace, so that the lengths around them stay right.
HOSTILE: dict[str, Callable[[int], str]] = {
    "above": lambda length: "../" * (length // 3) + "x" * (length % 3),
    "above from within": lambda length: "a/../../" + "x" * (length - 8),
    "absolute": lambda length: "/" + "x" * (length - 1),
    "s3": lambda length: "s3://" + "x" * (length - 5),
    "file": lambda length: "file:///" + "x" * (length - 8),
    "here": lambda length: "./" + "x" * (length - 2),
    "nul": lambda length: "\0" + "x" * (length - 1),
    "empty segment": lambda length: "a//" + "x" * (length - 3),
}


def _replaced(uri: str, version: int, old: str, new: str) -> None:
    (path,) = [p for p in Path(uri, "_versions").iterdir() if p.name == f"{2**64 - 1 - version}.manifest"]
    data = path.read_bytes()
    assert data.count(old.encode()) >= 1
    assert len(old.encode()) == len(new.encode())
    path.write_bytes(data.replace(old.encode(), new.encode()))


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_data_file_outside_of_the_table_is_refused(uri: str, kind: str) -> None:
    dataset = esker.write_dataset(pa.table({"id": [1, 2]}), uri)
    (file,) = dataset.get_fragments()[0].data_files()
    _replaced(uri, 1, file.path, HOSTILE[kind](len(file.path)))
    for use in (
        lambda: esker.dataset(uri).to_table(),
        lambda: esker.dataset(uri).take([0]),
        lambda: esker.dataset(uri).get_fragments(),
        lambda: esker.dataset(uri).delete("id = 1"),
        lambda: esker.write_dataset(pa.table({"id": [3]}), uri, mode="append").to_table(),
    ):
        with pytest.raises(CorruptFileError, match=r"expected a data file by a relative path below .* found") as caught:
            use()
        assert "base path" in str(caught.value)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_transaction_outside_of_the_table_is_refused(uri: str, kind: str) -> None:
    dataset = esker.write_dataset(pa.table({"id": [1, 2]}), uri)
    name = dataset._manifest.transaction_file
    assert name is not None
    _replaced(uri, 1, name, HOSTILE[kind](len(name)))
    with pytest.raises(CorruptFileError, match="expected a transaction by a relative path below"):
        esker.dataset(uri)


def test_a_file_that_the_table_lists_beside_it_is_not_read(uri: str, tmp_path: Path) -> None:
    secret = esker.write_dataset(pa.table({"id": [42]}), tmp_path / "secret.lance")
    (theirs,) = secret.get_fragments()[0].data_files()
    dataset = esker.write_dataset(pa.table({"id": [1]}), uri)
    (ours,) = dataset.get_fragments()[0].data_files()
    fragment = FragmentMetadata(0, [DataFile(f"../../secret.lance/data/{theirs.path}", [0], [0], 2, 1)], 1)
    with pytest.raises(EskerError, match="relative path below"):
        esker.LanceDataset.commit(uri, esker.LanceOperation.Append([fragment]), read_version=1)
    assert esker.dataset(uri).to_table()["id"].to_pylist() == [1]
    assert ours.path in {path.name for path in Path(uri, "data").iterdir()}


def test_a_base_path_must_be_declared_and_whole(uri: str, tmp_path: Path) -> None:
    name = "../elsewhere-than-here"
    place = str(tmp_path / "cold")
    dataset = esker.write_dataset(
        pa.table({"id": [1]}), uri, initial_bases=[esker.DatasetBasePath(place, "cold")], target_bases=["cold"]
    )
    assert dataset.to_table()["id"].to_pylist() == [1]
    _replaced(uri, 1, place, (name * 20)[: len(place)])
    with pytest.raises(CorruptFileError, match="expected the absolute path or the URI of base path 1, found '\\.\\./"):
        esker.dataset(uri).to_table()


MESSAGES: dict[str, Callable[[bytes], object]] = {
    "manifest": lambda data: Manifest.decode(_framed(data), "m").fragments(),
    "fragment": Fragment.decode,
    "transaction": lambda data: Transaction.decode(data).decoded(),
    "schema of a manifest": lambda data: pa.schema(Manifest.decode(_framed(data), "m").schema),
}
DEPTH = 20_000


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_that_nest_without_end_are_an_error_or_a_value(name: str) -> None:
    bombs = [_groups(number, DEPTH) for number in (1, 5, 100)]
    bombs += [_nested([number], DEPTH) for number in range(1, 40)]
    # Operations, fragments, files, indices, schemas: what really nests in them.
    bombs += [
        _nested(numbers, DEPTH) for numbers in ([101, 1], [102, 2], [103, 1, 3], [104, 1, 1], [108, 1], [2, 2, 1])
    ]
    bombs += [_record(number, _nested([1, 2], DEPTH)) for number in range(98, 116)]
    for bomb in bombs:
        with suppress(CorruptFileError, UnsupportedError):
            MESSAGES[name](bomb)


def test_a_chain_of_fields_is_bounded() -> None:
    fields = b"".join(
        _record(1, _record(2, b"f") + _integer(3, i) + _integer(4, i - 1 if i else 2**64 - 1) + _record(5, b"struct"))
        for i in range(100_000)
    )
    with pytest.raises(CorruptFileError, match="at most 100 levels deep"):
        pa.schema(Manifest.decode(_framed(fields + _integer(3, 1)), "m").schema)


@pytest.mark.parametrize("claim", [2**31, 2**32, 2**40, 2**62, 2**63, 2**64 - 1])
def test_lengths_that_nothing_backs_are_refused(claim: int) -> None:
    for number in (1, 2, 5, 12, 100, 108):
        claimed = _varint(number << 3 | 2) + _varint(claim) + b"xy"
        for decode in (Fragment.decode, Transaction.decode, lambda data: Manifest.decode(_framed(data), "m")):
            with pytest.raises(CorruptFileError):
                decode(claimed)
    for length in (claim % 2**32, 2**32 - 1):
        with pytest.raises(CorruptFileError):
            Manifest.decode(length.to_bytes(4, "little") + b"x" * 30 + (0).to_bytes(8, "little") + b"\0\0\2\0LANC", "m")


def _with_column(path: Path, metadata: bytes) -> None:
    """A file of one column, whose metadata become others."""
    with LanceFileWriter(path, pa.schema({"a": pa.int64()}), version="2.1") as writer:
        writer.write_batch(pa.record_batch({"a": [1, 2, 3]}))
    data = path.read_bytes()
    body, footer = data[:-40], data[-40:]
    first, columns, buffers = (int.from_bytes(footer[at : at + 8], "little") for at in (0, 8, 16))
    column_table = columns + len(metadata) - (columns - first)
    global_table = column_table + 16
    path.write_bytes(
        body[:first]
        + metadata
        + first.to_bytes(8, "little")
        + len(metadata).to_bytes(8, "little")
        + body[buffers:]
        + first.to_bytes(8, "little")
        + column_table.to_bytes(8, "little")
        + global_table.to_bytes(8, "little")
        + footer[24:]
    )


def _page(encoding: bytes) -> bytes:
    """Metadata of a column with one page, `encoding` within a direct encoding."""
    kind = _record(1, b"/lance.encodings21.PageLayout") + _record(2, encoding)
    return _record(2, _integer(3, 3) + _record(4, _record(2, _record(1, kind))))


def test_encodings_that_nest_without_end_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    bombs = [_nested(numbers, DEPTH) for numbers in ([1], [2], [3], [1, 3], [1, 3, 2], [2, 1, 1], [4, 1, 2])]
    for metadata in [_page(bomb) for bomb in bombs] + bombs + [_groups(2, DEPTH), _page(_groups(1, DEPTH))]:
        _with_column(path, metadata)
        with pytest.raises((CorruptFileError, UnsupportedError)):
            LanceFileReader(path).read_all().to_table()


ROW_IDS = (
    PEAK
    + """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
import esker
from esker._native.table import Fragment
from esker.exceptions import EskerError
uri, message = sys.argv[1], bytes.fromhex(sys.argv[2])
try:
    fragment = Fragment.decode(message)
    from esker import LanceDataset, LanceOperation
    from esker.fragment import FragmentMetadata
    dataset = esker.dataset(uri)
    operation = LanceOperation.Append([FragmentMetadata.from_native(fragment)])
    dataset = LanceDataset.commit(uri, operation, read_version=dataset.version)
    dataset.take_rows([5, 10**6])
    dataset.to_table(with_row_id=True)
except EskerError as error:
    print("error", str(error)[:200])
except MemoryError:
    print("memory")
print(peak())
"""
)


@pytest.mark.parametrize("end", [2**31, 2**40, 2**63, 2**64 - 1])
def test_row_ids_that_claim_to_be_many_cost_nothing(uri: str, end: int) -> None:
    dataset = esker.write_dataset(pa.table({"id": [1, 2]}), uri, enable_stable_row_ids=True)
    file = dataset.get_fragments()[0].metadata.files[0]
    ids = _record(1, _record(1, _integer(1, 0) + _integer(2, end)))
    data_file = _record(1, file.path.encode()) + _record(2, b"\0") + _record(3, b"\0") + _integer(4, 2) + _integer(5, 1)
    message = _integer(1, 7) + _record(2, data_file) + _integer(4, end) + _record(5, ids)
    done = subprocess.run(
        [sys.executable, "-c", ROW_IDS, uri, message.hex()], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("error"), done.stdout
    # What the libraries themselves take, and nothing by the number of ids.
    assert int(done.stdout.split()[-1]) < 512 << 20
