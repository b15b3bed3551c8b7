"""The predicate of an overwrite (Spark's `replaceWhere`): which rows it replaces, and which new rows are allowed."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from ..._native.expr import Expression, Predicate
from ...exceptions import InvalidArgumentError
from ..definition.constraints import failed_check
from ..read.repeatable import check_repeatable
from ..read.session_zone import clock_in_zone, in_zone, leaps_in_zone


class RowPredicate:
    """Which rows an overwrite replaces; its new rows must match as well.

    Args:
        sql: Its text.
        schema: The table's columns.
        session_timezone: What times without a zone mean in it; UTC if not given.
        numbers_as_text: Whether a number that is compared with text is its text, as deltalake has it; if not, that is
            refused.
        clock: What `now()` and today's day are; None for when it is evaluated.

    Raises:
        InvalidArgumentError: It does not parse, names no column, or is of chance.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.write.row_predicate import RowPredicate
        >>> RowPredicate("x > 1", pa.schema([("x", pa.int64())])).mask(pa.record_batch({"x": [1, 2, None]})).to_pylist()
        [False, True, False]
    """

    def __init__(
        self,
        sql: str,
        schema: pa.Schema,
        session_timezone: str | None = None,
        *,
        numbers_as_text: bool = False,
        clock: datetime | None = None,
    ) -> None:
        check_repeatable(sql)
        sql = leaps_in_zone(sql, schema, session_timezone)
        schema = in_zone(schema, session_timezone)
        sql = clock_in_zone(sql, schema.names, session_timezone, clock)
        predicate = Predicate.parse_sql(sql, schema, numbers_as_text)
        self.predicates = [predicate]
        self.columns = predicate.columns
        self._expression = Expression.parse_sql(sql, schema, numbers_as_text)

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether each row is one of them: null is no yes."""
        found = pa.array(self._expression.evaluate(batch))
        return pc.fill_null(found.cast(pa.bool_()), False)

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises if new rows are none of them.

        Raises:
            InvalidArgumentError: It names the first of them.
        """
        wrong = pc.invert(self.mask(batch))
        if pc.any(wrong).as_py():
            row = batch.filter(wrong).slice(0, 1).select(self.columns).to_pylist()
            raise InvalidArgumentError(
                f"expected rows for which the predicate is true, found {row[0]}; nothing was written. "
                + failed_check(wrong)
            )
