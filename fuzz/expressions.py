"""Writes the corpus of serialized Arrow expressions, as pyarrow pickles them: `python -m fuzz.expressions`."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

CORPUS = Path(__file__).parent / "corpus" / "arrow_expression"


def expressions() -> dict[str, pc.Expression]:
    """One of each shape, over the columns i, f, s and st{a, b}."""
    i, f, s = pc.field("i"), pc.field("f"), pc.field("s")
    words = pa.array(["x", "y", "x"]).dictionary_encode()
    found = {
        "comparison": i > 1,
        "kleene": ((i > 1) & (f < 0.5)) | ~(s == "a"),
        "nested_field": pc.field("st", "a") == 3,
        "struct_field": pc.struct_field(pc.field("st"), "a") == 3,
        "is_in": i.isin([1, 2, None]),
        "is_in_views": s.isin(pa.array(["a", "a longer text than twelve bytes"], pa.string_view())),
        "is_in_dictionary": s.isin(words),
        "cast": i.cast(pa.int32()) == pa.scalar(3, pa.int8()),
        "null_nan": f.is_null(nan_is_null=True),
        "text": pc.starts_with(s, "a") & pc.match_substring_regex(s, "b.*", ignore_case=True),
        "branches": pc.if_else(i > 1, f, 0.0) > 2,
        "case_when": pc.case_when(pc.make_struct(i > 1, i > 0), f, 1.0, 2.0) > 0,
        "times": pc.scalar(dt.datetime(2020, 1, 1)) < pc.scalar(dt.datetime(2021, 1, 1)),
        "decimal": pc.scalar(Decimal("1.25")) < f,
    }
    chain = i > 0
    for number in range(200):
        chain = chain & (i != number)
    found["chain"] = chain
    return found


def main() -> None:
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, expression in expressions().items():
        _, (data,) = expression.__reduce__()
        (CORPUS / name).write_bytes(bytes(data))


if __name__ == "__main__":
    main()
