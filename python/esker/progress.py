"""The progress of a write: callbacks with the number of rows, or with each fragment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias


class FragmentWriteProgress(ABC):
    """The interface of callbacks for each fragment of a write, under pylance's names.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.progress import FragmentWriteProgress
        >>> class Count(FragmentWriteProgress):
        ...     done = 0
        ...     def begin(self, fragment, **kwargs): pass
        ...     def complete(self, fragment, **kwargs): self.done += 1
        >>> count = Count()
        >>> _ = esker.write_dataset(pa.table({"a": range(10)}), "memory://", max_rows_per_file=5, progress=count)
        >>> count.done
        2
    """

    @abstractmethod
    def begin(self, fragment: Any, **kwargs: Any) -> None:
        """Called before `complete` for a fragment (`FragmentMetadata`), whose file is complete already."""

    @abstractmethod
    def complete(self, fragment: Any, **kwargs: Any) -> None:
        """Called for a fragment whose file is complete. The fragment is staged, and not committed yet."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Does nothing."""

    def begin(self, fragment: Any, **kwargs: Any) -> None:
        """Does nothing."""

    def complete(self, fragment: Any, **kwargs: Any) -> None:
        """Does nothing."""


Progress: TypeAlias = Callable[[int], object] | FragmentWriteProgress
"""A function that is called with the number of rows so far, or a `FragmentWriteProgress`."""


def is_fragment_progress(progress: object) -> bool:
    """Whether it has the methods `begin` and `complete`. pylance's own classes have them, too."""
    return callable(getattr(progress, "begin", None)) and callable(getattr(progress, "complete", None))


def report(progress: Progress | None, fragments: Sequence[Any]) -> None:
    """Reports fragments to `progress`, if it has the methods for them."""
    if progress is None or not is_fragment_progress(progress):
        return
    for fragment in fragments:
        progress.begin(fragment)  # type: ignore[union-attr]
        progress.complete(fragment)  # type: ignore[union-attr]
