"""PySpark: the format `esker` for DataFrames, over Arrow both ways.

```python
df.write.format("esker").mode("append").save("flights.lance")
spark.read.format("esker").option("filter", "month = 1").load("flights.lance")
```

Spark finds the format by itself; `register(spark)` is for where it does not. `read` and `write` give what the format
call cannot: all save modes, a faster read, and errors of esker's own tree.
"""

from esker.spark.session import read, register, write
from esker.spark.source import EskerSource

__all__ = ["EskerSource", "read", "register", "write"]
