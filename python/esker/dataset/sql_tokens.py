"""`contains_tokens` for DataFusion: whether a text has all words of another, by pylance's rule of what a word is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from .._native.expr import Expression

if TYPE_CHECKING:
    from datafusion import ScalarUDF

_LETTER = r"\p{Alphabetic}\p{N}"
"""What words are made of, in a class of a regular expression: letters and numbers of any script."""
_TEXT = pa.schema([("text", pa.string())])


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
    places, results = [], []
    for query in pc.unique(queries).to_pylist():
        asked = pc.is_null(queries) if query is None else pc.equal(queries, query)
        rows = pc.indices_nonzero(asked)
        places.append(rows)
        results.append(_have_words(texts.take(rows), _words(query or "")))
    if not places:
        return pa.nulls(0, pa.bool_())
    return pa.concat_arrays(results).take(pc.sort_indices(pa.concat_arrays(places)))


def _words(query: str) -> list[str]:
    letters = sorted(set(query))
    of_word = dict(zip(letters, _matches(pa.array(letters, pa.string()), f"[{_LETTER}]").to_pylist(), strict=True))
    return sorted(set("".join(letter if of_word[letter] else " " for letter in query).split(" ")) - {""})


def _have_words(texts: pa.Array, words: list[str]) -> pa.Array:
    found = pc.equal(texts, texts)
    for word in words:
        found = pc.and_(found, _matches(texts, f"(?:^|[^{_LETTER}]){word}(?:[^{_LETTER}]|$)"))
    return found


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    expression = Expression.parse_sql(f"regexp_like(text, '{pattern}')", _TEXT)
    return pa.array(expression.evaluate(pa.RecordBatch.from_arrays([texts], schema=_TEXT)))
