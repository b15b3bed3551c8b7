"""Streams: the sink of `writeStream`, the source of `readStream`, and upserts over `foreachBatch` (docs/spark.md)."""
