"""`esker inspect`: the columns, pages and encodings of one data file, as a table and as a drawing of its bytes."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter

from .._native.file import ColumnLayout, FileLayout, plain_bytes
from .._native.file import inspect as read_layout
from .._native.store import Store
from ..exceptions import InvalidArgumentError
from ..store.stores import absolute, resolve
from .output import Output, size_text
from .tables import storage_options
from .why import show_why, weigh

_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")
_DRAWN_ROWS, _DRAWN_WIDTH = 4, 64


def inspect(options: Namespace, output: Output) -> None:
    """Prints the columns, pages, encodings, offsets and bytes of one file."""
    folder, _, name = absolute(options.file).rpartition("/")
    if not name:
        raise InvalidArgumentError(f"expected the path of a file to inspect, found {options.file!r}", path=options.file)
    store = resolve(folder or "/", storage_options=storage_options(options))
    layout = read_layout(store, name)
    if options.why:
        show_why(weigh(store, name, layout, options.compression, output), layout, options.file, output)
        return
    ratios = _ratios(store, name, layout, output)
    if output.as_json:
        output.json(_facts(layout, options.file, ratios))
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
    output.table(None, columns, [_row(*pair) for pair in zip(layout.columns, ratios, strict=True)])
    _draw(layout, output)


def _values(column: ColumnLayout) -> int:
    return sum(page.num_values for page in column.pages)


def _ratios(store: Store, name: str, layout: FileLayout, output: Output) -> list[float | None]:
    """The compression ratio of each column: its uncompressed bytes divided by its bytes in the file."""
    ratios: list[float | None] = []
    with output.progress("reading columns", len(layout.columns)) as tally:
        for column in layout.columns:
            plain = plain_bytes(store, name, column.index) if column.num_bytes else None
            ratios.append(None if plain is None else plain / column.num_bytes)
            tally.add(parts=1)
    return ratios


def _row(column: ColumnLayout, ratio: float | None) -> tuple[str, ...]:
    encodings = Counter(page.encoding for page in column.pages)
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


def _facts(layout: FileLayout, path: str, ratios: list[float | None]) -> dict[str, object]:
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
                "ratio": ratio,
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
            for column, ratio in zip(layout.columns, ratios, strict=True)
        ],
        "global_buffers": [{"offset": offset, "bytes": size} for offset, size in layout.global_buffers],
    }


def owners(layout: FileLayout, cells: int) -> list[int | None]:
    """The file divided into `cells` equal parts: for each the column that fills at least half of it, or None."""
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
