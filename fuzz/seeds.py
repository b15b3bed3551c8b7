"""Writes the corpus of the kernels: `python fuzz/seeds.py`. It takes what pylance wrote from rust/codec/tests/pylance.

The first bytes are the parameters that each body in rust/codec/src/fuzz/kernels.rs reads.
"""

import random
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
PYLANCE = Path(__file__).parent.parent / "rust/codec/tests/pylance"
BITS = {8: 0, 16: 1, 32: 2, 64: 3}


def save(target: str, name: str, *parts: bytes) -> None:
    """Writes one input."""
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(parts))


def number(value: int) -> bytes:
    """As `Input::number` reads it."""
    return value.to_bytes(2, "little")


def large(value: int) -> bytes:
    """As `Input::large_number` reads it."""
    return number(value * 8)


def pylance(name: str) -> bytes:
    """What pylance wrote."""
    return (PYLANCE / name).read_bytes()


def main() -> None:
    """Writes all inputs."""
    numbers = random.Random(1)
    text = b" ".join(numbers.choice([b"esker", b"drift", b"moraine", b"kame", b"till"]) for _ in range(200))
    for bits, width in [(8, 3), (16, 5), (32, 7), (64, 5)]:
        chunk = pylance(f"inline_u{bits}_{width}.bin")
        save("inline_bitpack", f"u{bits}", bytes([BITS[bits]]), number(1000), number(7), chunk)
        save("bitpack", f"u{bits}", bytes([BITS[bits], width]), number(3), number(900), b"\0", chunk[bits // 8 :])
        save("bit_stream", f"u{bits}", bytes([BITS[bits], width, bits % 3]), large(5), large(300), chunk)
        save("byte_stream_split", f"{bits}", bytes([bits // 8]), numbers.randbytes(bits * 5))
    for count in (1050, 2000):
        save("outline_bitpack", f"{count}", bytes([1, 1]), large(count), pylance(f"outline_u16_1_{count}.bin"))
    ends = b"".join(end.to_bytes(8, "little") for end in (3, 3, 1003, 7, 20, 1020, 900))
    save("ends", "nulls", large(0), large(1000), ends)
    values, lengths = pylance("rle_values.bin"), pylance("rle_lengths.bin")
    save("rle", "u32", bytes([2, 0]), number(1000), number(len(lengths)), lengths, values)
    save("rle", "wide", bytes([0, 1]), number(300), number(4), number(100), number(200), b"ab")
    table, codes = pylance("fsst_symbols.bin"), pylance("fsst_chunk.bin")
    save("fsst", "pylance", number(len(table)), table, codes[int.from_bytes(codes[:4], "little") :])
    words = [text[at : at + 9] for at in range(0, 900, 9)]
    save("fsst_round_trip", "text", bytes([90]), *(bytes([len(word)]) + word for word in words))
    save("general", "zstd", b"\0", number(4096), pylance("bss_zstd_f64.bin"))
    save("general", "lz4", b"\1", number(4096), pylance("bss_lz4_f64.bin"))
    save("general_round_trip", "text", b"\3", text)
    save("packed_rows", "rows", bytes([12, 4, 8]), numbers.randbytes(240))


if __name__ == "__main__":
    main()
