"""`Progress`: how long operations report their progress.

```
operation ──Tally.add──> Done ──Progress.report──> a user's object, or the progress bar of the command line
```

Long operations (writes, scans, merges, clean-ups) have an argument `progress=`, and report a `Done` to a `Progress`.
`as_progress` adapts the other objects that users may pass: a function, or pylance's `FragmentWriteProgress`.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from .missing import names_of_peer

Unit: TypeAlias = Literal["rows", "bytes", "files", "parts"]


@dataclass(frozen=True, kw_only=True)
class Done:
    """The progress of one step. All counts are from its start.

    Attributes:
        step: What is being done, as text for people: "writing rows".
        rows: Rows so far.
        bytes: Bytes so far: of rows in memory, or of files where these are counted.
        files: Files so far.
        parts: Other things so far: commits, versions, fragments or pages.
        unit: Which of these counts goes up to `total`.
        total: The final value of that count, None if it is not known.
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
        """The count of its unit.

        Example:
            >>> from esker.progress import Done
            >>> Done(step="removing files", files=3, bytes=900, unit="files", total=4).count
            3
        """
        return int(getattr(self, self.unit))


class Progress(Protocol):
    """The interface that operations report to: any object with this method that is not callable.

    Reports may come from any thread, one at a time. An exception in `report` ends the operation.

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
        """Called with the progress so far."""


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


class FileSystemFragmentWriteProgress(FragmentWriteProgress):
    """Notes each fragment of a write as a JSON file; while it is open, a second file with `PROGRESS_EXT` is beside it.

    Args:
        base_uri: The folder for the files: a local path, or a URI that pyarrow opens. It is made if it is not there.
        metadata: Noted in each file of an open fragment, such as the name of the machine.

    Raises:
        ArrowInvalid: pyarrow does not know the URI.

    Example:
        >>> import os, tempfile, esker, pyarrow as pa
        >>> from esker.progress import FileSystemFragmentWriteProgress
        >>> folder = tempfile.mkdtemp()
        >>> progress = FileSystemFragmentWriteProgress(folder)
        >>> _ = esker.write_dataset(pa.table({"a": [1]}), "memory://", progress=progress)
        >>> os.listdir(folder)
        ['fragment_0.json']
    """

    PROGRESS_EXT: str = ".in_progress"

    def __init__(self, base_uri: str, metadata: dict[str, str] | None = None) -> None:
        from pyarrow.fs import FileSystem

        self._files, self._folder = FileSystem.from_uri(base_uri)
        self._metadata = dict(metadata or {})

    def _path(self, fragment: Any, ending: str) -> str:
        return f"{self._folder.rstrip('/')}/fragment_{fragment.id}{ending}"

    def _note(self, path: str, values: object) -> None:
        with self._files.open_output_stream(path) as out:
            out.write(json.dumps(values).encode())

    def begin(self, fragment: Any, **kwargs: Any) -> None:
        """Writes both files."""
        self._files.create_dir(self._folder, recursive=True)
        noted = {"fragment_id": fragment.id, "metadata": self._metadata}
        self._note(self._path(fragment, self.PROGRESS_EXT), noted)
        self._note(self._path(fragment, ".json"), fragment.to_json())

    def complete(self, fragment: Any, **kwargs: Any) -> None:
        """Removes the file that tells that the fragment is open."""
        self._files.delete_file(self._path(fragment, self.PROGRESS_EXT))


Watcher: TypeAlias = Progress | Callable[[int], object] | FragmentWriteProgress
"""What users can pass as `progress=`: a `Progress`, a function that is called with a count (of rows, unless documented
otherwise), or a `FragmentWriteProgress`."""


StepWatcher: TypeAlias = Progress | Callable[[str, int, int | None], object]
"""What users give to work of several steps: a `Progress`, or a function that is called with step, count and total."""


def as_progress(given: Watcher | None, unit: Unit = "rows") -> Progress | None:
    """Adapts the argument `progress=` to a `Progress`.

    Args:
        given: See `Watcher`; None for no progress.
        unit: The unit of the count that a function is called with.

    Raises:
        TypeError: It is none of these.

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


def as_progress_of_steps(given: StepWatcher | None) -> Progress | None:
    """The same for work of several steps, whose functions are called with the step, the count and the total.

    Example:
        >>> from esker.progress import Done, as_progress_of_steps
        >>> as_progress_of_steps(print).report(Done(step="deleting", files=3, unit="files"))
        deleting 3 None
    """
    return _StepAdapter(given) if callable(given) else as_progress(given)


def byte_count(values: Any) -> int:
    """Bytes of a batch or an array of pyarrow; of views those of their buffers, where it cannot tell (before 24).

    Example:
        >>> import pyarrow as pa
        >>> from esker.progress import byte_count
        >>> byte_count(pa.array([1, 2, 3], pa.int16()).slice(1))
        4
    """
    try:
        return int(values.nbytes)
    except TypeError:
        return int(values.get_total_buffer_size())


def counted(batches: Iterable[_Batch], progress: Progress | None, step: str) -> Iterable[_Batch]:
    """Record batches, which are reported as they are taken.

    Example:
        >>> import pyarrow as pa
        >>> from esker.progress import as_progress, counted
        >>> batches = pa.table({"a": range(10)}).to_batches(max_chunksize=6)
        >>> [batch.num_rows for batch in counted(batches, as_progress(print), "writing rows")]
        6
        10
        [6, 4]
    """
    if progress is None:
        return batches
    tally = Tally(progress, step)

    def count(batch: _Batch) -> _Batch:
        tally.add(rows=batch.num_rows, bytes=byte_count(batch))
        return batch

    return map(count, batches)


class _Countable(Protocol):
    @property
    def num_rows(self) -> int: ...
    @property
    def nbytes(self) -> int: ...


_Batch = TypeVar("_Batch", bound=_Countable)


class _StepAdapter:
    def __init__(self, given: Callable[[str, int, int | None], object]) -> None:
        self._given = given

    def report(self, done: Done, /) -> None:
        self._given(done.step, done.count, done.total)


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
    """Counts the progress of one step, from any thread, and reports each change. Costs nothing without a `Progress`.

    Args:
        progress: The `Progress` to report to, or None.
        step: What is being done, as text for people.
        unit: The unit of `total`.
        total: The final count, None if it is not known.

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
