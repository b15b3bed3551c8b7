"""Functions that compute new columns from batches of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from .exceptions import InvalidArgumentError
from .staging import refuse_options


class BatchUDF:
    """A function from a batch to a batch of as many rows, with the columns that it makes.

    Args:
        function: Gets a record batch, returns a record batch (or a pandas data frame).
        output_schema: The columns that it returns; those of its first batch by default.

    Example:
        `dataset.add_columns(esker.batch_udf()(lambda batch: pa.record_batch([...], ["new"])))`
    """

    def __init__(self, function: Callable[[pa.RecordBatch], Any], output_schema: pa.Schema | None = None) -> None:
        self.function = function
        self.output_schema = output_schema

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The new columns of a batch.

        Raises:
            InvalidArgumentError: The function returned something else.
        """
        result = self.function(batch)
        if not isinstance(result, pa.RecordBatch):
            try:
                result = pa.RecordBatch.from_pandas(result, schema=self.output_schema, preserve_index=False)
            except (AttributeError, TypeError, pa.ArrowInvalid) as error:
                raise InvalidArgumentError(
                    f"expected the function to return a record batch, found {type(result).__name__}"
                ) from error
        if result.num_rows != batch.num_rows:
            raise InvalidArgumentError(
                f"expected the function to return {batch.num_rows} rows for as many, found {result.num_rows}"
            )
        if self.output_schema is not None:
            try:
                result = result.select(self.output_schema.names).cast(self.output_schema)
            except (KeyError, pa.ArrowInvalid) as error:
                raise InvalidArgumentError(
                    f"expected the columns of output_schema from the function: {error}"
                ) from error
        return result


def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: Any = None
) -> Callable[[Callable[[pa.RecordBatch], Any]], BatchUDF]:
    """A decorator of functions for `LanceDataset.add_columns`.

    Args:
        output_schema: The columns that the function returns; those of its first batch by default.
        checkpoint_file: Not supported yet.

    Example:
        >>> import esker, pyarrow as pa, pyarrow.compute as pc
        >>> @esker.batch_udf()
        ... def double(batch):
        ...     return pa.record_batch([pc.multiply(batch["id"], 2)], ["twice"])
        >>> dataset = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-udf")
        >>> dataset.add_columns(double, read_columns=["id"])
        >>> dataset.to_table()["twice"].to_pylist()
        [2, 4]
    """
    refuse_options(checkpoint_file=checkpoint_file)
    return lambda function: BatchUDF(function, output_schema)
