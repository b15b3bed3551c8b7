"""The functions of JSON columns for DataFusion: ours, which evaluate whole batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from .._native.expr import Expression

if TYPE_CHECKING:
    from datafusion import ScalarUDF

_RESULTS = {
    "json_extract": pa.string(),
    "json_exists": pa.bool_(),
    "json_get": pa.large_binary(),
    "json_get_string": pa.string(),
    "json_get_int": pa.int64(),
    "json_get_float": pa.float64(),
    "json_get_bool": pa.bool_(),
    "json_array_contains": pa.bool_(),
    "json_array_length": pa.int64(),
}
"""The type of what each function returns."""


def json_functions(failed: Callable[[BaseException], None]) -> list[ScalarUDF]:
    """The functions, to be registered with a session of DataFusion.

    Args:
        failed: Is told what a function raises, of which DataFusion keeps only a text with the stack.
    """
    from datafusion import udf

    made = []
    for name, result in _RESULTS.items():
        types = [pa.large_binary(), pa.string()]
        if name == "json_array_contains":
            types.append(pa.string())
        made.append(udf(_evaluated(name, types, failed), types, result, "immutable", name))
    return made


def _evaluated(name: str, types: list[pa.DataType], failed: Callable[[BaseException], None]) -> Callable[..., pa.Array]:
    names = ["json", "path", "value"][: len(types)]
    schema = pa.schema(list(zip(names, types, strict=True)))
    expression = Expression.parse_sql(f"{name}({', '.join(names)})", schema)

    def evaluate(*arrays: pa.Array) -> pa.Array:
        try:
            return pa.array(expression.evaluate(pa.RecordBatch.from_arrays(list(arrays), schema=schema)))
        except BaseException as error:
            failed(error)
            raise

    return evaluate
