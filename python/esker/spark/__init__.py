"""PySpark: the format `esker` for DataFrames, over Arrow in both directions (docs/spark.md).

```python
df.write.format("esker").mode("append").save("flights.lance")
spark.read.format("esker").option("filter", "month = 1").load("flights.lance")
```

Spark finds the format by itself; otherwise call `register(spark)`. `read` and `write` do what the format call cannot:
columns and rows chosen first, counts by metadata, all save modes, esker's own errors. `map_batches` fuses a scan with a
function, `lookup` and `worker_dataset` find rows by random access, `upsert_stream` writes a stream by key.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from esker.spark.fused_map import map_batches
    from esker.spark.row_lookup import lookup
    from esker.spark.saving import write
    from esker.spark.session import register
    from esker.spark.source import EskerSource
    from esker.spark.streaming.upsert import upsert_stream
    from esker.spark.table_read import TableRead, read
    from esker.spark.wording import as_raised_by_esker as errors
    from esker.spark.worker_tables import worker_dataset

__all__ = [
    "EskerSource",
    "TableRead",
    "errors",
    "lookup",
    "map_batches",
    "read",
    "register",
    "upsert_stream",
    "worker_dataset",
    "write",
]

# Names are imported when they are used: Spark starts many processes, each of which needs few of them.
_HOME_OF = {
    "EskerSource": ("source", "EskerSource"),
    "TableRead": ("table_read", "TableRead"),
    "errors": ("wording", "as_raised_by_esker"),
    "lookup": ("row_lookup", "lookup"),
    "map_batches": ("fused_map", "map_batches"),
    "read": ("table_read", "read"),
    "register": ("session", "register"),
    "upsert_stream": ("streaming.upsert", "upsert_stream"),
    "worker_dataset": ("worker_tables", "worker_dataset"),
    "write": ("saving", "write"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, named = _HOME_OF[name]
    value = getattr(importlib.import_module(f".{home}", __name__), named)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
