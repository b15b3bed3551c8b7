"""`esker head`, `esker count` and `esker sql`: rows of a table."""

from __future__ import annotations

from argparse import Namespace

import pyarrow as pa

from ..progress import byte_count
from .cells import unique_names, values_of
from .output import Output, cell_text
from .tables import open_table


def head(options: Namespace, output: Output) -> None:
    """Prints the first rows of a table."""
    columns = options.columns.split(",") if options.columns else None
    dataset = open_table(options)
    with output.progress("looking for rows") as tally:
        table = dataset.to_table(columns=columns, filter=options.filter, limit=options.rows, progress=tally.progress)
    _print(output, table, f"{table.num_rows} of {dataset.count_rows():,} rows")


def sql(options: Namespace, output: Output) -> None:
    """Prints the result of a SQL query."""
    query = open_table(options).sql(options.query).build()
    with output.progress("running the query") as tally:
        reader = query.to_stream_reader()
        batches = []
        for batch in reader:
            tally.add(rows=batch.num_rows, bytes=byte_count(batch))
            batches.append(batch)
    table = pa.Table.from_batches(batches, reader.schema)
    _print(output, table, f"{table.num_rows:,} rows")


def _print(output: Output, table: pa.Table, title: str) -> None:
    names = unique_names(table.column_names)
    values = list(zip(*map(values_of, table.columns), strict=True))
    if output.as_json:
        output.json([dict(zip(names, row, strict=True)) for row in values])
        return
    types = [field.type for field in table.schema]
    headers = [(f"{name}\n{type_}", _is_number(type_)) for name, type_ in zip(names, types, strict=True)]
    rows = [[cell_text(value) for value in row] for row in values]
    if output.fits(headers, rows):
        output.table(title, headers, rows)
    else:
        output.records(title, names, rows)


def count(options: Namespace, output: Output) -> None:
    """Prints how many rows a table has."""
    dataset = open_table(options)
    if options.filter is None:
        total = dataset.count_rows()
    else:
        fragments = dataset.get_fragments()
        total = 0
        dataset.scanner(filter=options.filter)  # Checks the filter, also for a table without fragments.
        with output.progress("counting", len(fragments)) as tally:
            for fragment in fragments:
                total += fragment.count_rows(options.filter)
                tally.add(parts=1)
    if output.as_json:
        output.json({"rows": total})
    else:
        print(total)


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
