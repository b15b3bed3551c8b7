"""Rows that a table may have: generated columns computed, constraints and the predicate of an overwrite enforced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ..definition.constraints import Constraints
from .plan import DeltaWritePlan


def checked(batches: Iterable[pa.RecordBatch], plan: DeltaWritePlan) -> Iterator[pa.RecordBatch]:
    """The batches with generated columns, after their rows were checked.

    Args:
        batches: Rows with the table's columns and types.
        plan: The write.

    Raises:
        InvalidArgumentError: Rows that a constraint or the predicate refuses.

    Example:
        `staging.store(checked(conformed(rows, plan.after.schema), plan))`
    """
    after, request = plan.after, plan.request
    constraints = Constraints(after.schema, after.configuration, after.protocol)
    predicate = request.row_predicate(after.schema.to_plain_arrow())
    for batch in batches:
        whole = constraints.generate(batch, set(plan.missing))
        constraints.enforce(whole)
        if predicate is not None:
            predicate.check(whole)
        yield whole
