"""The names of pylance's `LanceDataset` that this one does not have yet: each raises `UnsupportedError` with advice."""

from __future__ import annotations

from typing import NoReturn

from ..exceptions import UnsupportedError
from ..missing import missing_method, missing_property
from ..missing_names import INDEX, LOG_OF_ROWS, VECTORS

_OWNER = "LanceDataset"
_PLAIN_ROWS = "take LanceDataset.scanner(...).to_table(), and go on with pyarrow, DuckDB or polars"


class UnsupportedApi:
    """The methods of pylance's `LanceDataset` that raise `UnsupportedError`."""

    has_index = missing_property(_OWNER, "has_index", INDEX)
    partition_expression = missing_property(_OWNER, "partition_expression", "pass filter= to the scanner")

    # Inherited from pyarrow's class, where they use the C++ object, which is an empty dataset here.
    _get_fragments = missing_method(_OWNER, "get_fragments", "call LanceDataset.get_fragments()")
    _scan_options = missing_method(_OWNER, "filter", "pass filter= to the scanner")

    def _scanner_options(self, options: object) -> NoReturn:
        # pyarrow calls this before it scans a dataset by itself: in `Scanner.from_dataset`, joins, Acero's plans.
        raise UnsupportedError(
            "pyarrow cannot scan a LanceDataset by itself, pass it LanceDataset.scanner().to_reader(), or to_table()",
            operation="scanner",
        )

    centroids = missing_method(_OWNER, "centroids", VECTORS)
    commit_existing_index_segments = missing_method(_OWNER, "commit_existing_index_segments", INDEX)
    create_index = missing_method(_OWNER, "create_index", INDEX)
    create_index_uncommitted = missing_method(_OWNER, "create_index_uncommitted", INDEX)
    create_scalar_index = missing_method(_OWNER, "create_scalar_index", INDEX)
    describe_indices = missing_method(_OWNER, "describe_indices", INDEX)
    drop_index = missing_method(_OWNER, "drop_index", INDEX)
    get_ivf_model = missing_method(_OWNER, "get_ivf_model", VECTORS)
    index_statistics = missing_method(_OWNER, "index_statistics", INDEX)
    initialize_mem_wal = missing_method(_OWNER, "initialize_mem_wal", LOG_OF_ROWS)
    join = missing_method(_OWNER, "join", _PLAIN_ROWS)
    list_indices = missing_method(_OWNER, "list_indices", INDEX)
    mem_wal_index_details = missing_method(_OWNER, "mem_wal_index_details", LOG_OF_ROWS)
    mem_wal_writer = missing_method(_OWNER, "mem_wal_writer", LOG_OF_ROWS)
    merge_existing_index_segments = missing_method(_OWNER, "merge_existing_index_segments", INDEX)
    merge_index_metadata = missing_method(_OWNER, "merge_index_metadata", INDEX)
    new_file_session = missing_method(_OWNER, "new_file_session", "open one by its place: esker.file.LanceFileSession")
    optimize_indices = missing_method(_OWNER, "optimize_indices", INDEX)
    prewarm_index = missing_method(_OWNER, "prewarm_index", INDEX)
    remap_row_addrs = missing_method(
        _OWNER, "remap_row_addrs", "find rows again by a key of their own, or write with enable_stable_row_ids=True"
    )
    replace_schema = missing_method(_OWNER, "replace_schema", "change columns with alter_columns or add_columns")
