"""The names of pylance's `LanceDataset` that this one does not have yet: each raises `UnsupportedError`."""

from __future__ import annotations

from typing import NoReturn

from ..exceptions import UnsupportedError
from ..missing import missing_method, missing_property

_OWNER = "LanceDataset"


class UnsupportedApi:
    """The methods of pylance's `LanceDataset` that raise `UnsupportedError`."""

    branches = missing_property(_OWNER, "branches")
    optimize = missing_property(_OWNER, "optimize")
    partition_expression = missing_property(_OWNER, "partition_expression")
    stats = missing_property(_OWNER, "stats")
    tags = missing_property(_OWNER, "tags")

    # Inherited from pyarrow's class, where they use the C++ object, which is an empty dataset here.
    _get_fragments = missing_method(_OWNER, "get_fragments")
    _scan_options = missing_method(_OWNER, "filter")

    def _scanner_options(self, options: object) -> NoReturn:
        # pyarrow calls this before it scans a dataset by itself: in `Scanner.from_dataset`, joins, Acero's plans.
        raise UnsupportedError(
            "pyarrow cannot scan a LanceDataset by itself, pass it LanceDataset.scanner().to_reader(), or to_table()",
            operation="scanner",
        )

    create_branch = missing_method(_OWNER, "create_branch")
    create_index = missing_method(_OWNER, "create_index")
    create_index_uncommitted = missing_method(_OWNER, "create_index_uncommitted")
    create_scalar_index = missing_method(_OWNER, "create_scalar_index")
    describe_indices = missing_method(_OWNER, "describe_indices")
    drop_index = missing_method(_OWNER, "drop_index")
    filter = missing_method(_OWNER, "filter")
    join = missing_method(_OWNER, "join")
    join_asof = missing_method(_OWNER, "join_asof")
    migrate_manifest_paths_v2 = missing_method(_OWNER, "migrate_manifest_paths_v2")
    optimize_indices = missing_method(_OWNER, "optimize_indices")
    prewarm_index = missing_method(_OWNER, "prewarm_index")
    replace_schema = missing_method(_OWNER, "replace_schema")
    sort_by = missing_method(_OWNER, "sort_by")
    sql = missing_method(_OWNER, "sql")
    tracked_files = missing_method(_OWNER, "tracked_files")
    list_indices = missing_method(_OWNER, "list_indices")
