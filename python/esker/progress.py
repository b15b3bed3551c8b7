"""Being told how far a write is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias


class FragmentWriteProgress(ABC):
    """Told of each fragment that a write makes, under pylance's names.

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
        """A fragment (`FragmentMetadata`) is about to be reported; its file is whole already."""

    @abstractmethod
    def complete(self, fragment: Any, **kwargs: Any) -> None:
        """The fragment's file is whole. The fragment is in no version yet."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Does nothing."""

    def begin(self, fragment: Any, **kwargs: Any) -> None:
        """Does nothing."""

    def complete(self, fragment: Any, **kwargs: Any) -> None:
        """Does nothing."""


Progress: TypeAlias = Callable[[int], object] | FragmentWriteProgress
"""A function that is called with the rows taken so far, or an object that is told of each fragment."""


def is_fragment_progress(progress: object) -> bool:
    """Whether it has the two methods that fragments are reported to; pylance's own classes have them too."""
    return callable(getattr(progress, "begin", None)) and callable(getattr(progress, "complete", None))


def report(progress: Progress | None, fragments: Sequence[Any]) -> None:
    """Tells of fragments, if that is what `progress` is for."""
    if progress is None or not is_fragment_progress(progress):
        return
    for fragment in fragments:
        progress.begin(fragment)  # type: ignore[union-attr]
        progress.complete(fragment)  # type: ignore[union-attr]
