"""`contains_tokens` for DataFusion: whether a text has all words of another, by pylance's rule of what a word is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from .._native.expr import Expression

if TYPE_CHECKING:
    from datafusion import ScalarUDF

_ROWS = pa.schema([("text", pa.string()), ("words", pa.string())])


def token_function() -> ScalarUDF:
    """The function, to be registered with a session of DataFusion."""
    from datafusion import udf

    return udf(contains_tokens, [pa.string(), pa.string()], pa.bool_(), "immutable", "contains_tokens")


def contains_tokens(texts: pa.Array, queries: pa.Array) -> pa.Array:
    """Whether each text has all words of its query, in any order and in the same case.

    Args:
        texts: The texts.
        queries: For each of them words, with anything else between them. Without words, or null, it asks for nothing.

    Returns:
        Booleans, null where the text is.

    Example:
        >>> import pyarrow as pa
        >>> from esker.dataset.sql_tokens import contains_tokens
        >>> contains_tokens(pa.array(["a-b", "A b", None]), pa.array(["b a"] * 3)).to_pylist()
        [True, False, None]
    """
    rows = pa.RecordBatch.from_arrays([texts, queries], schema=_ROWS)
    return pa.array(Expression.parse_sql("contains_tokens(text, words)", _ROWS).evaluate(rows))
