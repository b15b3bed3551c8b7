"""`DatasetOptimizer`: what `LanceDataset.optimize` gives."""

from __future__ import annotations

from typing import Any

from ..lance.change.run import commit_change
from ..lance.cleanup.automatic import INTERVAL, OLDER_THAN, AutoCleanupConfig, config_of
from ..lance.handle import DatasetHandle
from ..lance.operation import LanceOperation
from ..missing import missing_method
from ..missing_names import COMPACTION, INDEX


class DatasetOptimizer:
    """The upkeep of a table: `LanceDataset.optimize`.

    Example:
        >>> import esker, pyarrow as pa
        >>> dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-optimize")
        >>> dataset.optimize.enable_auto_cleanup({"interval": 20, "older_than_seconds": 14 * 24 * 3600})
        >>> dataset.config()["lance.auto_cleanup.older_than"]
        '1209600s'
    """

    def __init__(self, dataset: DatasetHandle) -> None:
        self._dataset = dataset

    def enable_auto_cleanup(self, auto_cleanup_config: AutoCleanupConfig, **kwargs: Any) -> None:
        """Has writers clean the table up by themselves: see `write_dataset(auto_cleanup_options=...)`.

        Args:
            auto_cleanup_config: After how many versions (`interval`), and how old versions must be that go
                (`older_than_seconds`).
            **kwargs: Of no effect, as in pylance.

        Raises:
            InvalidArgumentError: A number is negative.
        """
        del kwargs
        self._update(dict(config_of(auto_cleanup_config)))

    def disable_auto_cleanup(self, **kwargs: Any) -> None:
        """Has writers leave all versions where they are.

        Args:
            **kwargs: Of no effect, as in pylance.
        """
        del kwargs
        self._update({INTERVAL: None, OLDER_THAN: None})

    def _update(self, values: dict[str, str | None]) -> None:
        operation = LanceOperation.UpdateConfig(config_updates=LanceOperation.UpdateMap(values, False))
        self._dataset._move_to(commit_change(self._dataset._table, lambda _: operation))

    compact_files = missing_method("DatasetOptimizer", "compact_files", COMPACTION)
    optimize_indices = missing_method("DatasetOptimizer", "optimize_indices", INDEX)


class OptimizeApi(DatasetHandle):
    """The property of `LanceDataset` for upkeep."""

    @property
    def optimize(self) -> DatasetOptimizer:
        """The upkeep of the table: automatic clean-up."""
        return DatasetOptimizer(self)
