"""Writes the corpus of whole files: `python fuzz/files.py`, with esker built and pylance from PyPI.

A file for each version, writer and encoding, each as small as its encoding allows: NAME.VERSION.WRITER.lance.
"""

import random
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.file import LanceFileWriter as PylanceWriter

import esker
from esker.file import LanceFileWriter as EskerWriter

CORPUS = Path(__file__).parent / "corpus" / "open_and_read"
NUMBERS = random.Random(1)
COMPRESSION = "lance-encoding:compression"
GOAL = "goal"
"""Stands for `compression=` of esker's writer."""


def some(values: list[Any], every: int = 7) -> list[Any]:
    """The values with nulls among them."""
    return [None if i % every == every - 1 else value for i, value in enumerate(values)]


def integers(count: int, below: int) -> list[int]:
    return [NUMBERS.randrange(below) for _ in range(count)]


def words(count: int) -> list[str]:
    return ["é" * (i % 3) + NUMBERS.choice(["till", "kame", "moraine", ""]) + str(i * 7919 % 997) for i in range(count)]


def vectors(count: int, size: int) -> list[list[float]]:
    return [[NUMBERS.random() for _ in range(size)] for _ in range(count)]


def repeating() -> dict[str, tuple[pa.Array, dict[str, str]]]:
    """Columns that compress, each as it is for each goal of a write, and what a hint asks for within it."""
    urls = pa.array([f"https://example.org/{i % 7}/item?page={NUMBERS.randrange(500)}" for i in range(1100)])
    found: dict[str, tuple[pa.Array, dict[str, str]]] = {}
    for goal in ("balanced", "small"):
        found |= {
            f"goal_{goal}_times": (pa.array([i * 60_000_000 for i in range(1100)], pa.timestamp("us")), {GOAL: goal}),
            f"goal_{goal}_floats": (pa.array([i % 50 / 8 for i in range(1100)], pa.float32()), {GOAL: goal}),
            f"goal_{goal}_few": (pa.array([(200, 30_000)[i % 2] for i in range(300)], pa.int16()), {GOAL: goal}),
            f"goal_{goal}_urls": (urls, {GOAL: goal}),
            f"goal_{goal}_keys": (pa.array([f"customer {i % 20:09}" for i in range(300)]), {GOAL: goal}),
        }
        found |= within(goal)
    return found


def within(goal: str) -> dict[str, tuple[pa.Array, dict[str, str]]]:
    """Compression within lists, nulls and dictionaries, and around runs and large values."""
    times = pa.array(some([i * 60_000_000 for i in range(2200)], 50), pa.timestamp("us"))
    urls = pa.array(some([f"https://example.org/{i % 7}/item?page={NUMBERS.randrange(500)}" for i in range(2200)], 50))
    offsets = pa.array(list(range(0, 2200, 3)), pa.int32())
    customers = [f"the customer of number {i * 7919 % 100:09}" for i in range(1500)]
    return {
        f"goal_{goal}_lists_of_times": (pa.ListArray.from_arrays(offsets, times), {GOAL: goal}),
        f"goal_{goal}_lists_of_urls": (pa.ListArray.from_arrays(offsets, urls), {GOAL: goal}),
        f"goal_{goal}_many_keys": (pa.array(some(customers, 50), pa.large_string()), {GOAL: goal}),
        f"goal_{goal}_decimals": (pa.array(some([i * 37 % 1009 / 100 for i in range(1500)], 50)), {GOAL: goal}),
        f"goal_{goal}_runs": (pa.array([i // 40 % 9 * 1000 for i in range(3000)], pa.int32()), {GOAL: goal}),
        f"goal_{goal}_keyed": (
            pa.array([f"kind {i // 40 % 50:04}" for i in range(2000)]).dictionary_encode(),
            {GOAL: goal},
        ),
        f"goal_{goal}_huge": (pa.array(some([bytes([i]) * 40_000 for i in range(5)], 4)), {GOAL: goal}),
        f"goal_{goal}_lists_of_huge": (
            pa.array([[bytes([i + j]) * 35_000 for j in range(i % 3)] for i in range(5)]),
            {GOAL: goal},
        ),
    }


def columns() -> dict[str, tuple[pa.Array, dict[str, str]]]:
    """One column for each encoding, with the metadata that asks for it."""
    long_text = [f"https://example.org/{i % 7}/{NUMBERS.randrange(10**6)}/moraine?page={i}" for i in range(900)]
    person = pa.struct([("name", pa.string()), ("age", pa.int32())])
    people = [{"name": f"n{i}", "age": i} for i in range(30)]
    return {
        "flat": (pa.array(some(vectors(1, 40)[0]), pa.float64()), {}),
        "bool": (pa.array(some([i % 3 == 0 for i in range(40)])), {}),
        "bitpack": (pa.array(some(integers(700, 50)), pa.int32()), {}),
        "bitpack_u64": (pa.array(integers(300, 3), pa.uint64()), {}),
        "rle": (pa.array([i // 120 for i in range(900)], pa.int64()), {}),
        "bss": (pa.array([i / 8 for i in range(700)]), {COMPRESSION: "zstd", "lance-encoding:bss": "on"}),
        "lz4": (pa.array([i * 1000003 % 77777 for i in range(1100)], pa.int32()), {COMPRESSION: "lz4"}),
        "strings": (pa.array(some(words(50))), {}),
        "binary": (pa.array([word.encode() for word in words(30)], pa.large_binary()), {}),
        "zstd_strings": (pa.array(words(60)), {COMPRESSION: "zstd"}),
        "fsst": (pa.array(long_text), {}),
        "repeated": (pa.array(some([["till", "kame", "a moraine of some length"][i % 3] for i in range(300)])), {}),
        "keyed": (pa.array(some(["a", "b", "c"] * 14)).dictionary_encode(), {}),
        "decimal": (pa.array(some(integers(30, 10**9)), pa.decimal128(20, 2)), {}),
        "timestamp": (pa.array(some(integers(30, 10**12)), pa.timestamp("us", tz="UTC")), {}),
        "fixed_binary": (pa.array([bytes([i]) * 5 for i in range(30)], pa.binary(5)), {}),
        "vectors": (pa.array(some(vectors(20, 4)), pa.list_(pa.float32(), 4)), {}),
        "vector_nulls": (pa.array([some([i, 2, 3], 3) for i in range(20)], pa.list_(pa.int16(), 3)), {}),
        "wide_vectors": (pa.array(some(vectors(9, 80), 4), pa.list_(pa.float32(), 80)), {}),
        "long_strings": (pa.array(some(["moraine " * 40 + str(i) for i in range(9)], 4)), {}),
        "lists": (pa.array([None if i % 9 == 8 else some(list(range(i % 5)), 4) for i in range(50)]), {}),
        "lists_of_lists": (
            pa.array([None if i % 7 == 6 else [words(j) for j in range(i % 4)] for i in range(20)]),
            {},
        ),
        "list_of_long": (pa.array([["x" * 300 + str(j) for j in range(i % 3)] for i in range(6)]), {}),
        "structs": (pa.array(some(people), person), {}),
        "list_of_structs": (pa.array([people[: i % 3] for i in range(20)], pa.list_(person)), {}),
        "all_null": (pa.array([None] * 20, pa.int32()), {}),
        "null_lists": (pa.array([None, [None], []] * 5, pa.list_(pa.int64())), {}),
        "constant": (pa.array([7] * 300, pa.int32()), {}),
        "constant_string": (pa.array(["till"] * 300), {}),
        "blobs": (
            pa.array([b"a" * 500, None, b"", b"b" * 100], pa.large_binary()),
            {"lance-encoding:blob": "true"},
        ),
        "packed": (
            pa.array([{"x": i, "y": i / 2} for i in range(30)], pa.struct([("x", pa.int32()), ("y", pa.float64())])),
            {"packed": "true", "lance-encoding:packed": "true"},
        ),
        "packed_strings": (
            pa.array(people, person),
            {"packed": "true", "lance-encoding:packed": "true"},
        ),
        **repeating(),
        "maps": (pa.array([[("a", i), ("b", None)][: i % 3] for i in range(20)], pa.map_(pa.string(), pa.int32())), {}),
        "empty": (pa.array([], pa.string()), {}),
    }


def second_blobs(writer: str) -> pa.Table:
    """Payloads in the file, in one beside it that has several, and in one of its own."""
    package = lance if writer == "pylance" else esker
    blobs = [b"a" * 40, None, b"", b"b" * 90, b"c" * 300, b"d" * 10]
    field = package.blob_field("x", inline_size_threshold=50, dedicated_size_threshold=200)
    return pa.table([package.blob_array(blobs)], schema=pa.schema([field]))


def write_table(writer: str, table: pa.Table, version: str, path: Path) -> None:
    """The data file of a table, for what has no writer of files: version 0.1, and blobs of the second kind."""
    with tempfile.TemporaryDirectory() as folder:
        write = lance.write_dataset if writer == "pylance" else esker.write_dataset
        loss: dict[str, Any] = {} if writer == "pylance" else {"allow_null_loss": True}
        write(table, f"{folder}/t", data_storage_version=version, max_rows_per_group=512, **loss)
        (data,) = Path(folder, "t", "data").glob("*.lance")
        path.write_bytes(data.read_bytes())


def main() -> None:
    """Writes all files, or those of the columns named in the arguments, and says which a writer refuses."""
    warnings.simplefilter("ignore")
    CORPUS.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[1:]
    for name, (values, metadata) in columns().items():
        if wanted and name not in wanted:
            continue
        for old in CORPUS.glob(f"{name}.*.lance"):
            old.unlink()
        for version in ("0.1", "2.0", "2.1", "2.2"):
            for writer, kind in (("pylance", PylanceWriter), ("esker", EskerWriter)):
                if version == "0.1" and name in ("blobs", "maps", "empty", "all_null"):
                    continue  # 0.1 has none of them
                if version in ("0.1", "2.0") and GOAL in metadata:
                    continue  # these know of no goal, or of a hint that does the same
                nullable = version != "0.1" and (values.null_count > 0 or pa.types.is_nested(values.type))
                field = pa.field("x", values.type, nullable=nullable or values.null_count > 0, metadata=metadata)
                schema = pa.schema([field])
                path = CORPUS / f"{name}.{version}.{writer}.lance"
                try:
                    if version == "0.1":
                        write_table(writer, pa.table([values.drop_null()], schema=schema), version, path)
                        continue
                    goal = metadata.get(GOAL)
                    options: dict[str, Any] = {"compression": goal} if goal else {}
                    if goal is not None and writer == "pylance":
                        continue
                    with kind(str(path), schema=schema, version=version, **options) as out:
                        out.write_batch(pa.record_batch([values], schema=schema))
                except BaseException as error:  # pylance panics at some types
                    path.unlink(missing_ok=True)
                    print(f"{path.name}: {str(error)[:100]}", file=sys.stderr)
    if not wanted or "blobs_v2" in wanted:
        for writer in ("pylance", "esker"):
            write_table(writer, second_blobs(writer), "2.2", CORPUS / f"blobs_v2.2.2.{writer}.lance")
    files = list(CORPUS.glob("*.lance"))
    print(f"{len(files)} files, {sum(file.stat().st_size for file in files)} bytes")


if __name__ == "__main__":
    main()
