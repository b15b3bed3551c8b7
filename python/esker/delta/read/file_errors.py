"""Turns pyarrow's errors about missing or corrupt data files into errors of esker that name the version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from ...exceptions import CorruptFileError, EskerError, IOFailedError, NotFoundError

_FINER = "Casting from timestamp[ns"
"""What pyarrow says of times whose last digits a cast would drop."""


class FinerTimesError(CorruptFileError):
    """A file has times that are no whole microseconds, which pyarrow's dataset does not cut."""


@contextmanager
def file_errors(version: int, path: str | None = None) -> Iterator[None]:
    """Reads files of a version within.

    Args:
        version: The one whose files are read.
        path: The file, where it is one.

    Raises:
        NotFoundError: A file is not there.
        CorruptFileError: A file is no Parquet.
        FinerTimesError: A file has finer times than the table.
        IOFailedError: The system does not let it be read.

    Example:
        >>> from esker.delta.read.file_errors import file_errors
        >>> from esker.exceptions import NotFoundError
        >>> try:
        ...     with file_errors(3, "a.parquet"):
        ...         raise FileNotFoundError("a.parquet")
        ... except NotFoundError as error:
        ...     print(error)
        version 3 has file a.parquet, which is not there: a.parquet; if it was vacuumed, open a newer version
    """
    name = "a file" if path is None else f"file {path}"
    known: dict[str, Any] = {"version": version} if path is None else {"version": version, "path": path}
    try:
        yield
    except EskerError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError(
            f"version {version} has {name}, which is not there: {error}; if it was vacuumed, open a newer version",
            **known,
        ) from error
    except (OSError, pa.ArrowInvalid) as error:
        # Errors of the operating system have an errno; pyarrow's errors about the bytes have none.
        if getattr(error, "errno", None) is not None:
            raise IOFailedError(f"{name} of version {version} cannot be read: {error}") from error
        kind = FinerTimesError if _FINER in str(error) else CorruptFileError
        raise kind(f"corrupt {name.removeprefix('a ')} of version {version}: {error}", path=path) from error


def each_batch(batches: Iterable[Any], version: int, path: str | None = None) -> Iterator[Any]:
    """The batches of a reader, with `file_errors` around each step.

    Example:
        `each_batch(dataset.to_batches(), version)`
    """
    steps = iter(batches)
    while True:
        with file_errors(version, path):
            batch = next(steps, None)
        if batch is None:
            return
        yield batch


def after(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Batches without their first rows, which were handed out by another reader.

    Example:
        >>> import pyarrow as pa
        >>> from esker.delta.read.file_errors import after
        >>> [batch.num_rows for batch in after([pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3]})], 1)]
        [1, 1]
    """
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(rows) if rows else batch
        rows = max(0, rows - batch.num_rows)


@contextmanager
def named_file_errors(version: int, parts: Iterable[tuple[str, Callable[[], Iterable[Any]]]]) -> Iterator[None]:
    """Reads several files of a version at once within. pyarrow does not say which is corrupt: they are read one by one.

    Args:
        version: The one whose files are read.
        parts: For each file its path, and what reads the same rows of it alone.

    Raises:
        CorruptFileError: As `file_errors`, with the path of the first file that is corrupt where one is found again.

    Example:
        `with named_file_errors(3, ((path, lambda: fragment.to_batches()) for path, fragment in fragments)): ...`
    """
    try:
        with file_errors(version):
            yield
    except FinerTimesError:
        raise
    except CorruptFileError:
        for path, read in parts:
            for _ in each_batch(read(), version, path):
                pass
        raise
