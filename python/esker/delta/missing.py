"""deltalake's names that this release does not have: each raises `UnsupportedError`, which says what to do instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any, NamedTuple, NoReturn

from ..exceptions import UnsupportedError
from ..missing import missing_from_module, missing_method

_COMMIT = "commit_properties post_commithook_properties"
_REWRITE = (
    "target_size max_concurrent_tasks max_spill_size max_temp_directory_size min_commit_interval writer_properties"
)


class MissingMethod(NamedTuple):
    """A method of deltalake's: what to do instead, and its parameters, so that editors and `help` show them."""

    advice: str
    parameters: str


TABLE_METHODS: dict[str, MissingMethod] = {
    "__datafusion_table_provider__": MissingMethod(
        "register a dataset with DataFusion: register_dataset(name, table.to_pyarrow_dataset())", "session"
    ),
    "compact_logs": MissingMethod(
        "call create_checkpoint(), from which readers replay the log", "starting_version ending_version"
    ),
    "repair": MissingMethod(
        "overwrite the partitions whose files are gone, or repair the table with deltalake", f"dry_run {_COMMIT}"
    ),
    "restore": MissingMethod(
        'write the old rows: write_deltalake(uri, DeltaTable(uri, version).scan(), mode="overwrite")',
        f"target ignore_missing_files protocol_downgrade_allowed {_COMMIT}",
    ),
    "vacuum": MissingMethod(
        "run VACUUM with deltalake or Spark; esker deletes no data file of a table",
        f"retention_hours dry_run enforce_retention_duration {_COMMIT} full keep_versions",
    ),
}
"""Methods of `deltalake.DeltaTable`."""

OPTIMIZER_METHODS: dict[str, MissingMethod] = {
    "compact": MissingMethod(
        'write the rows anew with larger files: write_deltalake(..., mode="overwrite", target_file_size=...)',
        f"partition_filters {_REWRITE} {_COMMIT}",
    ),
    "z_order": MissingMethod(
        'sort the rows and write them anew: write_deltalake(..., mode="overwrite")',
        f"columns partition_filters {_REWRITE} {_COMMIT}",
    ),
}
"""Methods of `deltalake.DeltaTable.optimize`."""

_TYPE = "leave it out: it is a type for checkers only; WriterProperties and ColumnProperties take texts"
NAMES: dict[str, str] = {
    "Compression": _TYPE,
    "Encoding": _TYPE,
    "ExperimentalWarning": "leave it out; esker.delta warns of nothing experimental",
    "RemoveAction": 'create_write_transaction(mode="overwrite", partition_filters=...) removes files',
    "TableOptimizer": OPTIMIZER_METHODS["compact"].advice,
    "create_table_with_add_actions": "call DeltaTable.create, then create_write_transaction",
    "enable_nanosecond_timestamps": "keep timestamps of microseconds, the Delta protocol's own",
    "encode_partition_value": "give values as they are; partition values are spelled by write_deltalake",
    "init_tracing": "trace the program that calls esker; it sends no spans of its own",
}
"""Names of the module `deltalake` and of its submodules."""


def missing(name: str, advice: str, module: str = "esker.delta") -> UnsupportedError:
    """The error that says that a name of deltalake's modules is not there, and what to do instead.

    Args:
        name: The name.
        advice: What to do.
        module: Our module that stands for deltalake's.

    Example:
        >>> from esker.delta.missing import missing
        >>> print(missing("QueryBuilder", "use DuckDB"))
        esker.delta.QueryBuilder is not supported yet; use DuckDB
    """
    return missing_from_module(f"{module}.{name} is not supported yet; {advice}", name)


def names_of(module: str, names: Sequence[str], homes: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """A submodule's `__getattr__` for names of deltalake's that are missing, or in another module of ours.

    Args:
        module: The module's `__name__`.
        names: Those that are missing.
        homes: Our module of each name that is elsewhere.

    Example:
        >>> from esker.delta.missing import names_of
        >>> names_of("esker.delta.table", [], {"TableMerger": "esker.delta.merger"})("TableMerger").__name__
        'TableMerger'
    """

    def find(name: str) -> Any:
        if homes is not None and name in homes:
            return getattr(import_module(homes[name]), name)
        if name in names:
            raise missing(name, NAMES[name], module)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find


def _method(owner: str, name: str, found: MissingMethod) -> Callable[..., NoReturn]:
    method = missing_method(owner, name, found.advice)
    names = ["self", *found.parameters.split()]
    vars(method)["__signature__"] = Signature([Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in names])
    return method


class MissingOptimizer:
    """The value of `DeltaTable.optimize`: its methods say what to do instead."""


class MissingMethods:
    """The methods of deltalake's `DeltaTable` that this release does not have."""

    @property
    def optimize(self) -> MissingOptimizer:
        """Its methods raise `UnsupportedError`, which says what to do instead."""
        return MissingOptimizer()


for _name, _found in TABLE_METHODS.items():
    setattr(MissingMethods, _name, _method("DeltaTable", _name, _found))
for _name, _found in OPTIMIZER_METHODS.items():
    setattr(MissingOptimizer, _name, _method("DeltaTable.optimize", _name, _found))
