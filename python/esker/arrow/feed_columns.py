"""The columns that change feeds add to those of a table, in Delta's own words."""

from __future__ import annotations

import pyarrow as pa

CHANGE_TYPE = pa.field("_change_type", pa.string())
COMMIT_VERSION = pa.field("_commit_version", pa.int64())
COMMIT_TIMESTAMP = pa.field("_commit_timestamp", pa.timestamp("us", "UTC"))
