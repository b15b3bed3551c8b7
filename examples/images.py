"""Images in a table: scans do not read them, and a few come by their numbers without reading the others.

python examples/images.py [folder]
"""

from __future__ import annotations

import random
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import esker
from esker import blob_field

IMAGES, SIDE = 300, 64


def png(number: int) -> bytes:
    """A square of noise as a PNG, drawn from its number."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    noise = random.Random(number)
    rows = b"".join(b"\0" + noise.randbytes(SIDE) for _ in range(SIDE))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def batches(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Images as a stream: a write keeps none of them in memory."""
    for start in range(0, IMAGES, 50):
        numbers = range(start, start + 50)
        images = esker.blob_array([png(number) for number in numbers])
        yield pa.record_batch([pa.array(numbers), pa.array([n % 10 for n in numbers]), images], schema=schema)


def main(folder: Path) -> None:
    """Writes an album and reads some of it."""
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("label", pa.int64()), blob_field("image")])
    reader = pa.RecordBatchReader.from_batches(schema, batches(schema))
    album = esker.write_dataset(reader, folder / "album.lance", data_storage_version="2.2")
    size = sum(path.stat().st_size for path in Path(album.uri).rglob("*") if path.is_file())
    print(f"{album.count_rows()} images, {size:,} bytes")

    # A scan of labels reads labels.
    album.io_stats_incremental()
    sevens = album.to_table(columns=["id"], filter="label = 7")["id"].to_pylist()
    print(f"{len(sevens)} images of label 7, found in {album.io_stats_incremental().read_bytes:,} bytes")

    # A training step: a shuffled batch, whole images, read together.
    chosen = random.Random(0).sample(sevens, 8)
    for (_, data), number in zip(album.read_blobs("image", indices=chosen), chosen, strict=True):
        assert data == png(number)
    print(f"8 images came in {album.io_stats_incremental().read_bytes:,} bytes")

    # One image as a file: only what is asked for is read.
    (image,) = album.take_blobs("image", indices=[123])
    assert image is not None  # as a null would be
    image.seek(16)
    print("width and height of image 123:", struct.unpack(">II", image.read(8)))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
