"""`CompactionPlan` and its `CompactionTask`s: what to rewrite, for workers of any kind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._native import table as native
from ...exceptions import InvalidArgumentError
from ..fragment_metadata import FragmentMetadata
from ..handle import DatasetHandle
from ..version import TableVersion
from .execution import rewrite_group
from .options import CompactionSettings
from .results import RewriteResult, fragments_of, parsed
from .vetting import fragments_of_version


@dataclass(frozen=True, eq=False, repr=False)
class CompactionTask:
    """One group of fragments to rewrite, by any process that can open the table. Picklable.

    Attributes:
        read_version: The version that the plan was made from.
        group: The fragments.
        settings: The options of the compaction.
    """

    read_version: int
    group: tuple[native.Fragment, ...]
    settings: CompactionSettings

    @property
    def fragments(self) -> list[FragmentMetadata]:
        """The fragments to rewrite."""
        return [FragmentMetadata.from_native(one) for one in self.group]

    def execute(self, dataset: DatasetHandle) -> RewriteResult:
        """Writes the new fragments. Nothing is visible before `Compaction.commit` has committed the result.

        Args:
            dataset: The table, at any version.

        Raises:
            InvalidArgumentError: The fragments are not those of this table's version.
            NotFoundError: The version that the plan was made from was cleaned up.

        Example:
            `results = [task.execute(dataset) for task in plan.tasks]`
        """
        table = dataset._table
        table.check_writable()
        if table.number != self.read_version:
            table = table.at(table.log.open(self.read_version)[0])
        group = fragments_of_version(table, self.group, "a task")
        return rewrite_group(table, group, self.settings, table.writable_log(durable=True))

    def json(self) -> str:
        """The task as JSON, for `from_json`."""
        task = {"fragments": [one.to_json() for one in self.fragments]}
        return _text({"task": task, "read_version": self.read_version, "options": self.settings.to_json()})

    @staticmethod
    def from_json(json: str) -> CompactionTask:
        """The task that `json` described.

        Raises:
            InvalidArgumentError: It is not the JSON of a task.
        """
        values = parsed("CompactionTask", json, ("task", "read_version", "options"))
        settings = CompactionSettings.from_json(values["options"])
        return CompactionTask(values["read_version"], _group("CompactionTask", values["task"]), settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompactionTask) and self._parts() == other._parts()

    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> tuple[object, ...]:
        return self.read_version, self.group, self.settings

    def __repr__(self) -> str:
        return f"CompactionTask(read_version={self.read_version}, fragments={self.fragments})"

    def __reduce__(self) -> tuple[Any, ...]:
        return CompactionTask, (self.read_version, self.group, self.settings)


@dataclass(frozen=True, eq=False, repr=False)
class CompactionPlan:
    """What `Compaction.plan` found to rewrite. Picklable, as are its tasks.

    Attributes:
        read_version: The version that it was made from.
        groups: The fragments of each task.
        settings: The options of the compaction.
    """

    read_version: int
    groups: tuple[tuple[native.Fragment, ...], ...]
    settings: CompactionSettings

    @classmethod
    def of(
        cls, table: TableVersion, groups: Iterable[tuple[native.Fragment, ...]], settings: CompactionSettings
    ) -> CompactionPlan:
        """The plan for groups of a version."""
        return cls(table.number, tuple(groups), settings)

    @property
    def tasks(self) -> list[CompactionTask]:
        """The tasks, each of which rewrites one group of fragments."""
        return [CompactionTask(self.read_version, group, self.settings) for group in self.groups]

    def num_tasks(self) -> int:
        """How many tasks there are."""
        return len(self.groups)

    def json(self) -> str:
        """The plan as JSON, for `from_json`."""
        tasks = [{"fragments": [one.to_json() for one in task.fragments]} for task in self.tasks]
        return _text({"tasks": tasks, "read_version": self.read_version, "options": self.settings.to_json()})

    @staticmethod
    def from_json(json: str) -> CompactionPlan:
        """The plan that `json` described.

        Raises:
            InvalidArgumentError: It is not the JSON of a plan.
        """
        values = parsed("CompactionPlan", json, ("tasks", "read_version", "options"))
        tasks = values["tasks"]
        if not isinstance(tasks, list):
            raise InvalidArgumentError(
                f"Could not load CompactionPlan due to error: expected a list of tasks, found {tasks!r}"
            )
        groups = tuple(_group("CompactionPlan", task) for task in tasks)
        return CompactionPlan(values["read_version"], groups, CompactionSettings.from_json(values["options"]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompactionPlan) and self._parts() == other._parts()

    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> tuple[object, ...]:
        return self.read_version, self.groups, self.settings

    def __repr__(self) -> str:
        return f"CompactionPlan(read_version={self.read_version}, tasks=<{self.num_tasks()} compaction tasks>)"

    def __reduce__(self) -> tuple[Any, ...]:
        return CompactionPlan, (self.read_version, self.groups, self.settings)


def _group(what: str, task: object) -> tuple[native.Fragment, ...]:
    if not isinstance(task, dict) or "fragments" not in task:
        raise InvalidArgumentError(f"Could not load {what} due to error: missing field `fragments`")
    return fragments_of(what, task["fragments"])


def _text(values: dict[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"))
