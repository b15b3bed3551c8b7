"""`esker inspect`: what one data file holds where, as a table and as a drawing."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter

from .._native.file import ColumnLayout, FileLayout
from .._native.file import inspect as read_layout
from ..commit.stores import absolute, resolve
from ..exceptions import InvalidArgumentError
from .output import Output, size_text
from .tables import storage_options

# Bytes of one value of the types whose values are all of one width; 0.125 is a bit.
_WIDTHS = {"bool": 0.125, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "halffloat": 2, "int32": 4, "uint32": 4}
_WIDTHS |= {"float": 4, "int64": 8, "uint64": 8, "double": 8, "date32:day": 4, "date64:ms": 8}
_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")
_DRAWN_ROWS, _DRAWN_WIDTH = 4, 64


def inspect(options: Namespace, output: Output) -> None:
    """Prints the columns, pages, encodings, offsets and bytes of one file."""
    folder, _, name = absolute(options.file).rpartition("/")
    if not name:
        raise InvalidArgumentError(f"expected the path of a file, found {options.file!r}", path=options.file)
    layout = read_layout(resolve(folder or "/", storage_options=storage_options(options)), name)
    if output.as_json:
        output.json(_facts(layout, options.file))
        return
    held = sum(column.num_bytes for column in layout.columns)
    output.facts(
        f"[bold]{options.file}",
        {
            "file version": layout.version,
            "rows": f"{layout.num_rows:,}",
            "size": f"{size_text(layout.size)} ({held:,} bytes of values, {layout.size - held:,} of metadata)",
        },
    )
    columns = [("column", True), ("field", False), ("type", False), ("pages", True), ("values", True), ("bytes", True)]
    columns += [("ratio", True), ("encodings", False)]
    output.table(None, columns, [_row(column) for column in layout.columns])
    _draw(layout, output)


def plain_bytes(logical_type: str, values: int) -> int | None:
    """Bytes of values of a fixed width without any encoding; None for types whose values differ in width.

    Example:
        >>> from esker.cli.inspect import plain_bytes
        >>> plain_bytes("fixed_size_list:float:768", 10), plain_bytes("string", 10)
        (30720, None)
    """
    head, _, rest = logical_type.partition(":")
    if head == "fixed_size_list":
        inner, _, length = rest.rpartition(":")
        return plain_bytes(inner, values * int(length))
    if head == "fixed_size_binary":
        return values * int(rest)
    if head in ("timestamp", "duration", "time64"):
        return values * 8
    if head == "time32":
        return values * 4
    if head == "decimal":
        return values * int(rest.split(":")[0]) // 8
    width = _WIDTHS.get(logical_type)
    return None if width is None else -int(-values * width // 1)


def _values(column: ColumnLayout) -> int:
    return sum(page.num_values for page in column.pages)


def _ratio(column: ColumnLayout) -> float | None:
    """Plain bytes by bytes in the file: above 1 the file is the smaller one."""
    plain = plain_bytes(column.logical_type, _values(column))
    return None if plain is None or column.num_bytes == 0 else plain / column.num_bytes


def _row(column: ColumnLayout) -> tuple[str, ...]:
    encodings = Counter(page.encoding for page in column.pages)
    ratio = _ratio(column)
    return (
        str(column.index),
        column.field,
        column.logical_type,
        f"{len(column.pages):,}",
        f"{_values(column):,}",
        f"{column.num_bytes:,}",
        "" if ratio is None else f"{ratio:.2f}",
        ", ".join(text if count == 1 else f"{count} x {text}" for text, count in encodings.items()),
    )


def _facts(layout: FileLayout, path: str) -> dict[str, object]:
    return {
        "path": path,
        "file_version": layout.version,
        "rows": layout.num_rows,
        "bytes": layout.size,
        "columns": [
            {
                "index": column.index,
                "field": column.field,
                "type": column.logical_type,
                "values": _values(column),
                "bytes": column.num_bytes,
                "ratio": _ratio(column),
                "pages": [
                    {
                        "first_value": page.first_value,
                        "values": page.num_values,
                        "encoding": page.encoding,
                        "buffers": [{"offset": offset, "bytes": size} for offset, size in page.buffers],
                    }
                    for page in column.pages
                ],
            }
            for column in layout.columns
        ],
        "global_buffers": [{"offset": offset, "bytes": size} for offset, size in layout.global_buffers],
    }


def owners(layout: FileLayout, cells: int) -> list[int | None]:
    """The file from start to end in so many cells, each with the column that fills most of it; None is metadata."""
    filled: list[Counter[int]] = [Counter() for _ in range(cells)]
    span = max(layout.size, 1) / cells
    for column in layout.columns:
        for page in column.pages:
            for offset, size in page.buffers:
                first, last = int(offset / span), int(max(offset, offset + size - 1) / span)
                for cell in range(max(first, 0), min(last, cells - 1) + 1):
                    covered = min(offset + size, (cell + 1) * span) - max(offset, cell * span)
                    filled[cell][column.index] += max(int(covered), 1 if size else 0)
    return [cell.most_common(1)[0][0] if cell and cell.most_common(1)[0][1] >= span / 2 else None for cell in filled]


def _draw(layout: FileLayout, output: Output) -> None:
    from rich.text import Text

    cells = owners(layout, _DRAWN_ROWS * _DRAWN_WIDTH)
    drawing = Text("from the first byte to the last, by column (· is metadata, padding or several columns)\n", "dim")
    for row in range(_DRAWN_ROWS):
        start = layout.size * row // _DRAWN_ROWS
        drawing.append(f"{start:>14,}  ", "dim")
        for owner in cells[row * _DRAWN_WIDTH : (row + 1) * _DRAWN_WIDTH]:
            mark = "·" if owner is None else "0123456789abcdefghijklmnopqrstuvwxyz"[owner % 36]
            drawing.append(mark, "dim" if owner is None else f"black on {_COLOURS[owner % len(_COLOURS)]}")
        drawing.append("\n")
    output.print(drawing)
