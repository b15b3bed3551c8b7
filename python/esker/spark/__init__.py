"""PySpark: the format `esker` for DataFrames, over Arrow in both directions (docs/spark.md).

```python
df.write.format("esker").mode("append").save("flights.lance")
spark.read.format("esker").option("filter", "month = 1").load("flights.lance")
```

Spark finds the format by itself; otherwise call `register(spark)`. `read` and `write` do what the format call cannot:
columns and rows chosen first, counts by metadata, all save modes, esker's own errors. `map_batches` fuses a scan with a
function, `lookup` and `worker_dataset` find rows by random access, `upsert_stream` writes a stream by key.
"""

from esker.spark.lookup import lookup
from esker.spark.map_batches import map_batches
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
