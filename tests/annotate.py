"""A 2.x file in hex, byte by byte, with what each byte means: the worked examples of docs/format.md.

`python -m tests.annotate FILE` prints one; `python -m tests.annotate --page` puts those of the page there anew.
"""

from __future__ import annotations

import re
import struct
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from esker.file import LanceFileReader, LanceFileWriter

PROTOS = Path(__file__).parent.parent / "protos"
_WIDTH = 12

EXAMPLES: dict[str, tuple[str, pa.Table]] = {
    "2.0, a column of integers with a null": ("2.0", pa.table({"n": pa.array([1, None, 3], pa.int32())})),
    "2.1, lists of strings": ("2.1", pa.table({"tags": pa.array([["a", "bc"], None, [], [None]])})),
    "2.1, small numbers": ("2.1", pa.table({"n": pa.array([i % 5 for i in range(200)], pa.int64())})),
    "2.2, one value throughout": ("2.2", pa.table({"n": pa.array([7, 7, None, 7], pa.int64())})),
}
"""The examples of docs/format.md: file version and rows."""

EXAMPLES_HEAD = """## Examples

Each file is what `LanceFileWriter` writes for the rows above it; a test compares every byte. Left is the offset.
"""


@dataclass(frozen=True)
class _Field:
    name: str
    type: str


def _messages() -> dict[str, dict[int, _Field]]:
    """The fields of every message in the .proto files, under the message's own name; encodings of 2.1 have a prefix."""
    found: dict[str, dict[int, _Field]] = {}
    for path in sorted(PROTOS.glob("*.proto")):
        prefix = "21." if "v2_1" in path.name else ""
        stack: list[str] = []
        text = re.sub(r"//[^\n]*", "", path.read_text())
        for line in re.sub(r"([{};])", r"\1\n", text).splitlines():
            opened = re.match(r"\s*(message|enum|oneof)\s+(\w+)\s*\{", line)
            if opened:
                stack.append(opened[2] if opened[1] == "message" else "")
                if stack[-1]:
                    found[prefix + stack[-1]] = {}
                continue
            if "}" in line and "{" not in line and stack:
                stack.pop()
                continue
            field = re.match(r"\s*(?:repeated |optional )?(map<[^>]+>|[\w.]+)\s+(\w+)\s*=\s*(\d+)", line)
            message = next((name for name in reversed(stack) if name), None)
            if field and message:
                found[prefix + message][int(field[3])] = _Field(field[2], field[1])
    return found


class _Dump:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lines: list[str] = []
        self.messages = _messages()

    def line(self, start: int, end: int, meaning: str) -> None:
        for at in range(start, max(end, start + 1), _WIDTH):
            part = self.data[at : min(at + _WIDTH, end)]
            text = f"{at:6}  {part.hex(' '):<{3 * _WIDTH - 1}}  {meaning if at == start else ''}"
            self.lines.append(text.rstrip())

    def varint(self, at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = self.data[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at

    def message(self, start: int, end: int, name: str, indent: str) -> None:
        at = start
        while at < end:
            first = at
            tag, at = self.varint(at)
            field = self.messages.get(name, {}).get(tag >> 3, _Field(f"field {tag >> 3}", ""))
            if tag & 7 == 0:
                value, at = self.varint(at)
                shown = value if value < 1 << 63 else value - (1 << 64)
                self.line(first, at, f"{indent}{field.name} = {shown}")
                continue
            size, at = self.varint(at)
            inner = self._inner(name, field)
            if inner is None:
                self.line(first, at + size, f"{indent}{field.name} = {self._text(self.data[at : at + size], field)}")
            else:
                self.line(first, at, f"{indent}{field.name}: {inner.removeprefix('21.')}, {size} bytes")
                self.message(at, at + size, inner, indent + "  ")
            at += size

    def _inner(self, message: str, field: _Field) -> str | None:
        if (message, field.name) in (("DirectEncoding", "encoding"), ("Any", "value")):
            return "Any" if message == "DirectEncoding" else self.any_type
        if field.type.startswith("map<"):
            return None
        prefix = "21." if message.startswith("21.") else ""
        for name in (prefix + field.type.rpartition(".")[2], field.type.rpartition(".")[2]):
            if name in self.messages:
                return name
        return None

    def _text(self, data: bytes, field: _Field) -> str:
        if field.type == "string":
            text = data.decode()
            if field.name == "type_url":
                name = text.rpartition(".")[2]
                self.any_type = f"21.{name}" if "encodings21" in text else name
            return f'"{text}"'
        if field.type.startswith(("uint", "int")) or field.name == "layers":
            numbers, at = [], 0
            while at < len(data):
                value = shift = 0
                while True:
                    byte = data[at]
                    value |= (byte & 127) << shift
                    at, shift = at + 1, shift + 7
                    if byte < 128:
                        break
                numbers.append(value)
            return f"{numbers}"
        return f"{len(data)} bytes"


def annotate(path: Path) -> str:
    """The file as lines of offset, bytes and meaning. Every byte of the file is in one of them, in order."""
    data = path.read_bytes()
    dump = _Dump(data)
    dump.messages["Any"] = {1: _Field("type_url", "string"), 2: _Field("value", "bytes")}
    metadata = LanceFileReader(path).metadata()
    parts: list[tuple[int, int, str]] = []
    for number, column in enumerate(metadata.columns):
        for place, page in enumerate(column.pages):
            for index, buffer in enumerate(page.buffers):
                name = f"column {number}, page {place}, buffer {index}"
                parts.append((buffer.position, buffer.size, name))
    for index, buffer in enumerate(metadata.global_buffers):
        parts.append(
            (buffer.position, buffer.size, f"global buffer {index}" + (": FileDescriptor" if not index else ""))
        )
    at = 0
    for start, size, name in sorted(part for part in parts if part[1]):
        if start > at:
            dump.line(at, start, f"{start - at} zeros up to a multiple of 64")
        if name.endswith("FileDescriptor"):
            dump.lines.append(f"{'':8}{name}, {size} bytes")
            dump.message(start, start + size, "FileDescriptor", "  ")
        else:
            dump.line(start, start + size, name)
        at = start + size
    _tail(dump, data)
    return "\n".join(dump.lines)


def _tail(dump: _Dump, data: bytes) -> None:
    footer = len(data) - 40
    first, columns_at, globals_at, _, columns = struct.unpack_from("<QQQII", data, footer)
    del first
    for number in range(columns):
        start, size = struct.unpack_from("<QQ", data, columns_at + 16 * number)
        dump.lines.append(f"{'':8}metadata of column {number}: ColumnMetadata, {size} bytes")
        dump.message(start, start + size, "ColumnMetadata", "  ")
    for place, end, what in ((columns_at, globals_at, "metadata of column"), (globals_at, footer, "global buffer")):
        for number, at in enumerate(range(place, end, 16)):
            start, size = struct.unpack_from("<QQ", data, at)
            dump.line(at, at + 8, f"{what} {number} at {start}")
            dump.line(at + 8, at + 16, f"of {size} bytes")
    names = ["first column metadata", "table of column metadata", "table of global buffers"]
    for index, name in enumerate(names):
        (value,) = struct.unpack_from("<Q", data, footer + 8 * index)
        dump.line(footer + 8 * index, footer + 8 * index + 8, f"footer: {name} at {value}")
    for index, name in enumerate(["global buffers", "columns"]):
        (value,) = struct.unpack_from("<I", data, footer + 24 + 4 * index)
        dump.line(footer + 24 + 4 * index, footer + 28 + 4 * index, f"footer: {value} {name}")
    major, minor = struct.unpack_from("<HH", data, footer + 32)
    dump.line(footer + 32, footer + 36, f"footer: version {major}.{minor}")
    dump.line(footer + 36, footer + 40, 'footer: "LANC"')


def renew(page: Path) -> None:
    """Puts the examples on the page, in place of those that are there."""
    text = page.read_text()
    parts = [text[: text.index("## Examples")], EXAMPLES_HEAD]
    for name, (version, table) in EXAMPLES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "example.lance"
            with LanceFileWriter(path, version=version) as writer:
                writer.write_batch(table)
            rows = ", ".join(f"`{column}`: {table[column].to_pylist()}" for column in table.column_names)
            parts.append(f"\n### {name}\n\n{rows}\n\n```text\n{annotate(path)}\n```\n")
    page.write_text("".join(parts))


if __name__ == "__main__":
    if sys.argv[1:] == ["--page"]:
        renew(PROTOS.parent / "docs" / "format.md")
    else:
        print(annotate(Path(sys.argv[1])))
