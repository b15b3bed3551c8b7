"""Who writes a batch of a stream: the query, by the id in its checkpoint, and the number of the batch.

Spark keeps both across restarts from the same checkpoint: a batch that is run again has the same query and number. The
tasks of a batch see them among their local properties; a data source's own processes do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark import TaskContext

from esker.commit import resolve
from esker.exceptions import EskerError, NotFoundError, UnsupportedError
from esker.store.stores import absolute

__all__ = ["BATCH_ID", "QUERY_ID", "checkpoint_of", "query_of_checkpoint", "query_of_task"]

QUERY_ID = "sql.streaming.queryId"
"""The local property of Spark with the id of the query, a UUID that its checkpoint keeps."""
BATCH_ID = "streaming.sql.batchId"
"""The local property of Spark with the number of the batch."""


def query_of_task() -> str | None:
    """The id of the query whose batch the current task computes, None outside of one.

    Example:
        >>> from esker.spark.streaming.batch_identity import query_of_task
        >>> query_of_task()
    """
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(QUERY_ID)


def checkpoint_of(options: Mapping[str, str]) -> str | None:
    """The option `checkpointLocation`, which Spark hands over in lower case.

    Example:
        >>> from esker.spark.streaming.batch_identity import checkpoint_of
        >>> checkpoint_of({"checkpointlocation": "/data/checkpoint"})
        '/data/checkpoint'
    """
    return next((value for name, value in options.items() if name.lower() == "checkpointlocation"), None)


def query_of_checkpoint(location: str | None) -> str:
    """The id of the query that a checkpoint belongs to.

    Args:
        location: The option `checkpointLocation`.

    Raises:
        UnsupportedError: There is no such option, or no id can be read there.
    """
    if location is None:
        raise UnsupportedError(
            f"expected Spark to tell its tasks the id of the query ({QUERY_ID}), found none; set the option "
            "checkpointLocation of the query, where the id is kept"
        )
    try:
        found = json.loads(resolve(absolute(location)).get("metadata"))
        return str(found["id"])
    except (EskerError, OSError, ValueError, KeyError, TypeError) as error:
        reason = "no file metadata" if isinstance(error, NotFoundError) else str(error)
        raise UnsupportedError(
            f"expected the id of the query in the checkpoint at {location}, found {reason}", uri=location
        ) from error
