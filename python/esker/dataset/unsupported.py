"""What pylance has and esker not yet: each name answers with a clear error instead of a missing attribute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..exceptions import UnsupportedError


def _pending(name: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(f"LanceDataset.{name} is not supported yet", operation=name)

    refuse.__name__ = name
    refuse.__qualname__ = f"LanceDataset.{name}"
    refuse.__doc__ = "Raises `UnsupportedError`: not supported yet."
    return refuse


def _pending_property(name: str) -> property:
    return property(_pending(name), doc="Raises `UnsupportedError`: not supported yet.")


class PendingApi:
    """The methods of pylance's `LanceDataset` that raise `UnsupportedError`."""

    branches = _pending_property("branches")
    optimize = _pending_property("optimize")
    partition_expression = _pending_property("partition_expression")
    stats = _pending_property("stats")
    tags = _pending_property("tags")

    # Of pyarrow's class, where they work on a C++ object that knows nothing of a table of ours.
    _get_fragments = _pending("get_fragments")
    _scan_options = _pending("filter")

    def _scanner_options(self, options: object) -> NoReturn:
        # What pyarrow asks for before it scans a dataset by itself: for `Scanner.from_dataset`, joins, Acero's plans.
        raise UnsupportedError(
            "pyarrow cannot scan a LanceDataset by itself, pass it LanceDataset.scanner().to_reader(), or to_table()",
            operation="scanner",
        )

    create_branch = _pending("create_branch")
    create_index = _pending("create_index")
    create_index_uncommitted = _pending("create_index_uncommitted")
    create_scalar_index = _pending("create_scalar_index")
    describe_indices = _pending("describe_indices")
    drop_index = _pending("drop_index")
    filter = _pending("filter")
    join = _pending("join")
    join_asof = _pending("join_asof")
    migrate_manifest_paths_v2 = _pending("migrate_manifest_paths_v2")
    optimize_indices = _pending("optimize_indices")
    prewarm_index = _pending("prewarm_index")
    replace_schema = _pending("replace_schema")
    sort_by = _pending("sort_by")
    sql = _pending("sql")
    tracked_files = _pending("tracked_files")
    list_indices = _pending("list_indices")
