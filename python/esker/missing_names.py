"""The advice for each module-level name of pylance that esker does not have yet, by the module of the same name.

`esker.missing.names_of_peer` raises errors with it. Classes hold the advice for their own missing names.
"""

from __future__ import annotations

from collections.abc import Mapping

_PYLANCE = "pylance, which opens the same table"

INDEX = f"scans read only what a filter needs; to make or use an index, take {_PYLANCE}"
VECTORS = f"compute distances over LanceDataset.to_table(), or search with {_PYLANCE}"
TEXTS = f"filter with LIKE or SIMILAR TO, or search with {_PYLANCE}"
LOG_OF_ROWS = "append with write_dataset, or upsert with LanceDataset.merge_insert"
COST = "see LanceDataset.io_stats for requests and bytes"
OVERLAYS = "write the changed columns with LanceFragment.update_columns, or LanceDataset.update"
CATALOGS = "open tables by their URI: dataset(uri, storage_options=...)"
TRAINING = "read batches with LanceDataset.to_batches, and rows by chance with sample or take"
INTERNAL = "it is an internal of pylance; call what needed it with esker's own values"
KEPT = "name a file: batch_udf(checkpoint_file=...)"
_OPTIONS = "pass plain values; the docstring of the method says which"

NAMES: Mapping[str, Mapping[str, str]] = {
    "esker": {
        "CompactedSsTable": LOG_OF_ROWS,
        "ExecutionPlan": "see LanceScanner.explain_plan and analyze_plan for the plan of a scan",
        "FFILanceTableProvider": "register LanceDataset.scanner().to_reader(), or query with DuckDB",
        "FtsToken": TEXTS,
        "IndexFile": INDEX,
        "IndexProgress": INDEX,
        "LsmPointLookupPlanner": LOG_OF_ROWS,
        "LsmScanner": LOG_OF_ROWS,
        "LsmVectorSearchPlanner": LOG_OF_ROWS,
        "ShardSnapshot": LOG_OF_ROWS,
        "ShardWriter": LOG_OF_ROWS,
        "ShardingField": LOG_OF_ROWS,
        "ShardingSpec": LOG_OF_ROWS,
        "bitmap": INTERNAL,
        "dependencies": INTERNAL,
        "download": TEXTS,
        "evaluate_sharding_spec": LOG_OF_ROWS,
        "hf": "convert to Arrow first: write_dataset(huggingface_dataset.data.table, uri)",
        "indices": INDEX,
        "io": "pass storage_options, and register stores of your own with esker.commit.register",
        "log": "nothing is logged; errors carry facts, and progress= tells how far a write is",
        "mem_wal": LOG_OF_ROWS,
        "namespace": CATALOGS,
        "otel": COST,
        "pydantic": "take esker.arrow.pydantic_models; LanceDataset.from_pydantic_model and write_dataset take models",
        "query": TEXTS,
        "sampler": TRAINING,
        "set_logger": "nothing is logged; errors carry facts, and progress= tells how far a write is",
        "simd_info": "there is nothing to choose: kernels are compiled for the machine's common instructions",
        "tokenize": TEXTS,
        "torch": TRAINING,
        "tracing": "see LanceScanner.analyze_plan for one scan, and LanceDataset.io_stats for its cost",
        "types": _OPTIONS,
        "util": INTERNAL,
        "vector": VECTORS,
    },
    "esker.dataset": {
        "AlterColumn": 'pass a dict: alter_columns({"path": "a", "name": "b"})',
        "Bitmap": INTERNAL,
        "BatchUDFCheckpoint": KEPT,
        "DocumentGranularity": TEXTS,
        "FullTextQuery": TEXTS,
        "IndexConfig": INDEX,
        "IndexFile": INDEX,
        "IndexInformation": INDEX,
        "IndexSegment": INDEX,
        "MinHashQuery": TEXTS,
        "SupportedDistributedIndices": INDEX,
        "VectorIndexReader": VECTORS,
        "VectorSearchQuery": VECTORS,
        "VersionRef": "see LanceDataset.version_refs, which returns dicts",
        "model_to_dict": INTERNAL,
        "normalize_transform": INTERNAL,
        "serialize_row_addrs": INTERNAL,
        "td_to_micros": INTERNAL,
    },
    "esker.fragment": {
        "Bitmap": INTERNAL,
        "normalize_transform": INTERNAL,
    },
    "esker.udf": {
        "BatchUDFCheckpoint": KEPT,
        "normalize_transform": INTERNAL,
    },
    "esker.progress": {
        "IndexProgress": INDEX,
    },
}
