"""`esker inspect --why`: for each page of a file its encoding, the other possible encodings, and their sizes.

The values of each page are read, and esker's writer estimates the encodings for them, whoever wrote the file: the one
that it chooses may differ from the one in the file.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._native.file import Alternative, ColumnLayout, FileLayout, PageLayout, why
from .._native.store import Store
from ..exceptions import UnsupportedError
from ..lance.write.compression import Compression
from .output import Output


@dataclass(frozen=True)
class Weighed:
    """One page, and its possible encodings.

    Args:
        column: Its column.
        number: Its number in the column.
        page: The page in the file.
        ways: Its possible encodings; empty if the file version has no choice.
    """

    column: ColumnLayout
    number: int
    page: PageLayout
    ways: list[Alternative]

    @property
    def num_bytes(self) -> int:
        """Bytes of the page in the file."""
        return sum(size for _, size in self.page.buffers)


def weigh(store: Store, name: str, layout: FileLayout, compression: Compression, output: Output) -> list[Weighed]:
    """The possible encodings of each page of a file, as a write with that `compression` weighs them. Reads all pages.

    Example:
        `weigh(store, "a.lance", layout, "balanced", output)`
    """
    pages = [(column, number, page) for column in layout.columns for number, page in enumerate(column.pages)]
    weighed = []
    with output.progress("weighing pages", len(pages)) as tally:
        for column, number, page in pages:
            weighed.append(Weighed(column, number, page, _ways(store, name, column.index, number, compression)))
            tally.add(parts=1)
    return weighed


def _ways(store: Store, name: str, column: int, page: int, compression: Compression) -> list[Alternative]:
    try:
        return why(store, name, column, page, compression)
    except UnsupportedError:
        # File versions without a choice of encodings.
        return []


def show_why(weighed: list[Weighed], layout: FileLayout, path: str, output: Output) -> None:
    """Prints the pages with their possible encodings."""
    if output.as_json:
        output.json({"path": path, "file_version": layout.version, "pages": [_facts(page) for page in weighed]})
        return
    columns = [("column", True), ("field", False), ("page", True), ("values", True), ("in the file", False)]
    columns += [("bytes", True), ("could be", False), ("about", True), ("", False)]
    rows: list[tuple[str, ...]] = []
    for page in weighed:
        place = (str(page.column.index), page.column.field, str(page.number), f"{page.page.num_values:,}")
        held = (page.page.encoding, f"{page.num_bytes:,}")
        ways = sorted(page.ways, key=lambda way: (not way.chosen, way.num_bytes))
        told = [(("> " if way.chosen else "") + way.name, f"{way.num_bytes:,}", way.reason) for way in ways]
        first, *rest = told or [("", "", "nothing to choose in this version")]
        rows.append((*place, *held, *first))
        rows.extend(("",) * 6 + way for way in rest)
    output.table(f"{path}, file version {layout.version}", columns, rows)


def _facts(page: Weighed) -> dict[str, object]:
    return {
        "column": page.column.index,
        "field": page.column.field,
        "page": page.number,
        "values": page.page.num_values,
        "encoding": page.page.encoding,
        "bytes": page.num_bytes,
        "alternatives": [
            {
                "name": way.name,
                "bytes": way.num_bytes,
                "nanoseconds": way.nanoseconds,
                "chosen": way.chosen,
                "reason": way.reason,
            }
            for way in page.ways
        ],
    }
