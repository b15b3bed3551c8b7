"""PySpark: the format `esker` for DataFrames, over Arrow in both directions (docs/spark.md).

```python
df.write.format("esker").mode("append").save("flights.lance")
spark.read.format("esker").option("filter", "month = 1").load("flights.lance")
```

Spark finds the format by itself; otherwise call `register(spark)`. `read` and `write` do what the format call cannot:
all save modes, a faster read, and esker's own errors. `upsert_stream` writes a stream by key.
"""

from esker.spark.session import read, register, write
from esker.spark.source import EskerSource
from esker.spark.streaming.upsert import upsert_stream

__all__ = ["EskerSource", "read", "register", "upsert_stream", "write"]
