"""Being told how far something is.

```
work ──Tally.add──> Done ──Progress.report──> whoever watches: a user's own object, a bar of the command line
```

Whatever takes long (a write, a scan, a merge, a clean-up) has an argument `progress=`, and reports to a `Progress` in
one form, `Done`. The other things that users may give, a function or pylance's `FragmentWriteProgress`, are adapted by
`as_progress` where they come in.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from .missing import names_of_peer

Unit: TypeAlias = Literal["rows", "bytes", "files", "parts"]


@dataclass(frozen=True, kw_only=True)
class Done:
    """How much of something is done. All counts are from its start.

    Attributes:
        step: What is being done, in words for people: "writing rows".
        rows: Rows so far.
        bytes: Bytes so far: of rows in memory, or of files where these are counted.
        files: Files so far.
        parts: Of what is counted by something else: commits, versions, fragments, pages.
        unit: Which of these counts goes up to `total`.
        total: What it goes up to, None if nobody knows.
        fragments: The fragments (`FragmentMetadata`) that are complete since the last report.
    """

    step: str
    rows: int = 0
    bytes: int = 0
    files: int = 0
    parts: int = 0
    unit: Unit = "rows"
    total: int | None = None
    fragments: Sequence[Any] = field(default=(), repr=False)

    @property
    def count(self) -> int:
        """How many of its unit.

        Example:
            >>> from esker.progress import Done
            >>> Done(step="removing files", files=3, bytes=900, unit="files", total=4).count
            3
        """
        return int(getattr(self, self.unit))


class Progress(Protocol):
    """What work reports to: any object that has this method, and that cannot be called.

    Reports may come from any thread, one at a time. An error that `report` raises ends the work.

    Example:
        >>> import esker, pyarrow as pa
        >>> class Bar:
        ...     def report(self, done):
        ...         print(done.step, done.count)
        >>> _ = esker.write_dataset(pa.table({"a": range(10)}), "memory://", progress=Bar())
        writing rows 10
        writing files 1
    """

    def report(self, done: Done, /) -> object:
        """Told how much is done by now."""


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


Watcher: TypeAlias = Progress | Callable[[int], object] | FragmentWriteProgress
"""What users give as `progress=`: a `Progress`, a function that is called with a count (of rows, where nothing else is
said), or an object that is told of each fragment of a write."""


def as_progress(given: Watcher | None, unit: Unit = "rows") -> Progress | None:
    """What a user gave as `progress=`, as work reports to it.

    Args:
        given: See `Watcher`; None for nobody who watches.
        unit: What a function is called with the count of.

    Raises:
        TypeError: None of these.

    Example:
        >>> from esker.progress import Done, as_progress
        >>> as_progress(print).report(Done(step="writing rows", rows=7))
        7
    """
    if given is None:
        return None
    if callable(given) or _is_told_of_fragments(given):
        return _Adapter(given, unit)
    if not callable(getattr(given, "report", None)):
        raise TypeError(
            f"expected progress to be called with a number of {unit}, or to have begin and complete, or report, "
            f"found {type(given).__name__}"
        )
    return given  # type: ignore[return-value]


def _is_told_of_fragments(given: object) -> bool:
    # pylance's own classes have these methods, too.
    return callable(getattr(given, "begin", None)) and callable(getattr(given, "complete", None))


class _Adapter:
    def __init__(self, given: Any, unit: Unit) -> None:
        self._given = given
        self._unit = unit

    def report(self, done: Done, /) -> None:
        if callable(self._given) and done.unit == self._unit:
            self._given(done.count)
        if _is_told_of_fragments(self._given):
            for fragment in done.fragments:
                self._given.begin(fragment)
                self._given.complete(fragment)


class Tally:
    """Counts what is done of one step, in any thread, and reports each time. Free where nobody watches.

    Args:
        progress: What to report to.
        step: What is being done, in words for people.
        unit: What `total` is of.
        total: How many there are, None if nobody knows.

    Example:
        >>> from esker.progress import Tally
        >>> class Bar:
        ...     def report(self, done):
        ...         print(f"{done.step}: {done.count} of {done.total}")
        >>> tally = Tally(Bar(), "removing files", unit="files", total=2)
        >>> tally.add(files=1, bytes=100)
        removing files: 1 of 2
    """

    def __init__(self, progress: Progress | None, step: str, *, unit: Unit = "rows", total: int | None = None) -> None:
        self.progress = progress
        self._done = Done(step=step, unit=unit, total=total)
        self._lock = threading.Lock()

    def add(
        self, *, rows: int = 0, bytes: int = 0, files: int = 0, parts: int = 0, fragments: Sequence[Any] = ()
    ) -> None:
        """Adds to the counts, and reports them."""
        if self.progress is None:
            return
        with self._lock:
            done = self._done
            self._done = replace(
                done,
                rows=done.rows + rows,
                bytes=done.bytes + bytes,
                files=done.files + files,
                parts=done.parts + parts,
                fragments=tuple(fragments),
            )
            self.progress.report(self._done)


if not TYPE_CHECKING:
    __getattr__ = names_of_peer(__name__)
