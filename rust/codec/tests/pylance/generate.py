"""Cuts encoded chunks out of files that pylance 14.0.2 writes: `python rust/codec/tests/pylance/generate.py`.

Each file here is the value buffers of one mini-block chunk, or a whole page buffer, as `tests/pylance.rs` says.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

HERE = Path(__file__).parent


def write(values: pa.Array, metadata: dict[str, str]) -> tuple[bytes, list[bytes]]:
    """A file with one column, and the buffers of its first page."""
    schema = pa.schema([pa.field("x", values.type, nullable=values.null_count > 0, metadata=metadata)])
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/x.lance"
        with LanceFileWriter(path, schema=schema, version="2.1") as writer:
            writer.write_batch(pa.record_batch([values], schema=schema))
        page = LanceFileReader(path).metadata().columns[0].pages[0]
        raw = Path(path).read_bytes()
        return raw, [raw[b.position : b.position + b.size] for b in page.buffers]


def page_buffers(values: pa.Array, metadata: dict[str, str]) -> list[bytes]:
    """The buffers of the first page of a file with one column."""
    return write(values, metadata)[1]


def chunks(buffers: list[bytes], num_buffers: int) -> list[list[bytes]]:
    """The value buffers of each mini-block chunk, for pages without levels."""
    found, at = [], 0
    for word in np.frombuffer(buffers[0], "<u2"):
        chunk = buffers[1][at : at + ((int(word) >> 4) + 1) * 8]
        sizes = np.frombuffer(chunk[2 : 2 + 2 * num_buffers], "<u2")
        begin, values = (2 + 2 * num_buffers + 7) // 8 * 8, []
        for size in sizes:
            values.append(chunk[begin : begin + int(size)])
            begin += (int(size) + 7) // 8 * 8
        found.append(values)
        at += len(chunk)
    return found


def pattern(bits: int, width: int, count: int = 1024) -> np.ndarray:
    """Value i is the lowest `width` bits of i * 0x9E3779B97F4A7C15."""
    values = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (values & np.uint64((1 << width) - 1)).astype(f"<u{bits // 8}")


def save(name: str, data: bytes) -> None:
    """Writes a fixture and says so."""
    (HERE / name).write_bytes(data)
    print(f"{name}: {len(data)} bytes")


def main() -> None:
    """Writes all fixtures."""
    for bits, widths in {8: (1, 3, 7), 16: (1, 5, 11), 32: (1, 2, 7), 64: (1, 2, 5)}.items():
        for width in widths:
            (chunk,) = chunks(page_buffers(pa.array(pattern(bits, width)), {}), 1)
            save(f"inline_u{bits}_{width}.bin", chunk[0])

    runs = np.repeat(np.arange(7, dtype="<u4") * 1000, [300, 1, 2, 600, 5, 20, 72])
    (chunk,) = chunks(page_buffers(pa.array(runs), {}), 2)
    save("rle_values.bin", chunk[0])
    save("rle_lengths.bin", chunk[1])

    floats = np.arange(512, dtype="<f8") / 8
    metadata = {"lance-encoding:compression": "zstd", "lance-encoding:bss": "on"}
    (chunk,) = chunks(page_buffers(pa.array(floats), metadata), 1)
    save("bss_zstd_f64.bin", chunk[0])
    metadata["lance-encoding:compression"] = "lz4"
    (chunk,) = chunks(page_buffers(pa.array(floats), metadata), 1)
    save("bss_lz4_f64.bin", chunk[0])

    for count in (1050, 2000):
        # Definition levels: null where i % 3 == 0.
        numbers = np.arange(count, dtype="u1") * 37
        page = page_buffers(pa.array(numbers, mask=np.arange(count) % 3 == 0), {})
        levels = int.from_bytes(page[1][2:4], "little")
        save(f"outline_u16_1_{count}.bin", page[1][8 : 8 + levels])

    words = ["drift", "esker", "esker"]
    text = [f"https://example.org/{i % 7}/item-{i * 7919 % 10007}?q={words[i % 3]}" for i in range(2000)]
    raw, page = write(pa.array(text), {})
    at = raw.index(b"TSSF") - 4
    save("fsst_symbols.bin", raw[at : at + 2312])
    first = chunks(page, 1)[0][0]
    save("fsst_chunk.bin", first)


if __name__ == "__main__":
    main()
