"""`RewriteResult`: what one task of a compaction wrote; `CompactionMetrics`: what a compaction did."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._native import table as native
from ...exceptions import CommitConflictError, InvalidArgumentError
from ..fragment_metadata import FragmentMetadata


@dataclass(frozen=True)
class LostGroup:
    """A group of fragments whose rewrite could not be committed: others changed what it was made from.

    Attributes:
        fragment_ids: The fragments that stay as they are.
        error: Whose commit was in the way.
    """

    fragment_ids: tuple[int, ...]
    error: CommitConflictError


@dataclass(frozen=True)
class CompactionMetrics:
    """What a compaction did to a table.

    Attributes:
        fragments_removed: How many fragments were replaced.
        fragments_added: How many fragments replaced them.
        files_removed: The data and deletion files of the fragments that were replaced.
        files_added: The data files of the new fragments.
        lost: The groups that were left out, since others had changed what they were made from.
    """

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0
    lost: tuple[LostGroup, ...] = field(default=(), repr=False, compare=False)

    def __add__(self, other: CompactionMetrics) -> CompactionMetrics:
        return CompactionMetrics(
            self.fragments_removed + other.fragments_removed,
            self.fragments_added + other.fragments_added,
            self.files_removed + other.files_removed,
            self.files_added + other.files_added,
            (*self.lost, *other.lost),
        )

    @classmethod
    def of(cls, old: Iterable[native.Fragment], new: Iterable[native.Fragment]) -> CompactionMetrics:
        """The counts of fragments and of their replacements."""
        old, new = list(old), list(new)
        return cls(
            fragments_removed=len(old),
            fragments_added=len(new),
            files_removed=sum(len(one.files) + (one.deletion_file is not None) for one in old),
            files_added=sum(len(one.files) for one in new),
        )


@dataclass(frozen=True, eq=False, repr=False)
class RewriteResult:
    """The new fragments that one task wrote. Nothing is visible before `Compaction.commit` has committed it.

    Small and picklable: workers send it to the process that commits.

    Attributes:
        read_version: The version that the fragments were read from.
        old: The fragments that are replaced, as that version has them.
        new: Their replacements, of id 0: the commit numbers them.
        staged: The places of all files that it wrote, for the store of its table.
    """

    read_version: int
    old: tuple[native.Fragment, ...]
    new: tuple[native.Fragment, ...]
    staged: frozenset[str]

    @property
    def metrics(self) -> CompactionMetrics:
        """What its commit will do."""
        return CompactionMetrics.of(self.old, self.new)

    @property
    def original_fragments(self) -> list[FragmentMetadata]:
        """The fragments that are replaced."""
        return [FragmentMetadata.from_native(one) for one in self.old]

    @property
    def new_fragments(self) -> list[FragmentMetadata]:
        """The fragments that replace them."""
        return [FragmentMetadata.from_native(one) for one in self.new]

    @property
    def files(self) -> frozenset[str]:
        """The places of its data files, for the store of its table."""
        return _data_files(self.new)

    @property
    def places(self) -> frozenset[str]:
        """The places of all files that its fragments have and that it wrote, for the store of its table."""
        return self.files | self.staged

    def json(self) -> str:
        """The result as JSON, for `from_json`."""
        return json.dumps(
            {
                "metrics": {
                    "fragments_removed": self.metrics.fragments_removed,
                    "fragments_added": self.metrics.fragments_added,
                    "files_removed": self.metrics.files_removed,
                    "files_added": self.metrics.files_added,
                },
                "new_fragments": [one.to_json() for one in self.new_fragments],
                "read_version": self.read_version,
                "original_fragments": [one.to_json() for one in self.original_fragments],
                "staged_files": sorted(self.staged),
            },
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(json: str) -> RewriteResult:
        """The result that `json` described.

        Raises:
            InvalidArgumentError: It is not the JSON of a result.
        """
        what = "RewriteResult"
        values = parsed(what, json, ("metrics", "new_fragments", "read_version", "original_fragments"))
        new = fragments_of(what, values["new_fragments"])
        staged = _staged(what, values.get("staged_files") or [], _data_files(new))
        return RewriteResult(values["read_version"], fragments_of(what, values["original_fragments"]), new, staged)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RewriteResult) and self._parts() == other._parts()

    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> tuple[object, ...]:
        return self.read_version, self.old, self.new

    def __repr__(self) -> str:
        return (
            f"RewriteResult(read_version={self.read_version}, new_fragments={self.new_fragments}, "
            f"old_fragments={self.original_fragments})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return RewriteResult, (self.read_version, self.old, self.new, self.staged)


def _data_files(fragments: Iterable[native.Fragment]) -> frozenset[str]:
    return frozenset(file.location for fragment in fragments for file in fragment.files)


def _staged(what: str, values: object, files: frozenset[str]) -> frozenset[str]:
    """The staged files that a JSON text names: those of its fragments, and the blob files beside them. No others, as
    those of a result that is lost are deleted."""
    stems = {file.removesuffix(".lance") for file in files}
    for value in values if isinstance(values, list) else [values]:
        stem, _, name = value.rpartition("/") if isinstance(value, str) else ("", "", "")
        if value not in files and not (stem in stems and name.endswith(".blob")):
            raise InvalidArgumentError(
                f"Could not load {what} due to error: expected staged_files as those of new_fragments, found {value!r}"
            )
    return frozenset(values) | files if isinstance(values, list) else files


def parsed(what: str, text: str, keys: Iterable[str]) -> Mapping[str, Any]:
    """The values of a JSON text that must be an object with these keys, and with a version's number.

    Raises:
        InvalidArgumentError: It is not.
    """
    try:
        values = json.loads(text)
        lacking = [key for key in keys if key not in values] if isinstance(values, dict) else list(keys)
    except ValueError as error:
        raise InvalidArgumentError(f"Could not load {what} due to error: {error}") from None
    if lacking:
        raise InvalidArgumentError(f"Could not load {what} due to error: missing field `{lacking[0]}`")
    version = values["read_version"]
    if type(version) is not int or not 0 < version < 2**64:
        raise InvalidArgumentError(
            f"Could not load {what} due to error: expected read_version as the number of a version, found {version!r}"
        )
    return values  # type: ignore[no-any-return]


def fragments_of(what: str, values: object) -> tuple[native.Fragment, ...]:
    """The fragments in JSON values.

    Raises:
        InvalidArgumentError: They are no list of fragments.
    """
    if not isinstance(values, list):
        raise InvalidArgumentError(
            f"Could not load {what} due to error: expected a list of fragments, found {values!r}"
        )
    try:
        return tuple(FragmentMetadata.from_json(value).to_native() for value in values)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"Could not load {what} due to error: expected fragments, found others: {type(error).__name__}: {error}"
        ) from None
