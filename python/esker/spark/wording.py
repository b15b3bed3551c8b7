"""Errors as Spark's users see them: they advise options in place of Python's arguments, and come without a stack.

Spark shows what a Python worker raises as text, with the stack of the worker before it: sixty lines of code that is not
the user's, and the message last. Of esker's errors the message says all; it comes first, and alone.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from esker.exceptions import EskerError, UnsupportedError

__all__ = ["WORDING", "as_raised_by_esker", "in_words_of_spark", "is_worker"]

WORDING = (
    ("try again or raise max_retries", "run the write again"),
    ("try again or raise max_commit_retries", "run the write again"),
    (", or write the rows with write_dataset(..., allow_null_loss=True), which loses them", ""),
    ("read fewer rows at a time", "read fewer rows at a time (the option rowsPerPartition)"),
    ("data_storage_version", "dataStorageVersion"),
    ("storage_options", "the option storageOptions"),
    (
        'leave partition_by out, or give mode="overwrite" and schema_mode="overwrite"',
        "leave the partition columns out, or say mode overwrite and overwriteSchema=true",
    ),
    ('mode="overwrite" with schema_mode="overwrite"', "mode overwrite with overwriteSchema=true"),
    ('mode="overwrite" with a predicate', "mode overwrite with replaceWhere"),
)
"""What messages say to those who call Python, and what it is for those who write options."""


@contextmanager
def in_words_of_spark() -> Iterator[None]:
    """Errors of esker that leave it name options. It also serves as a decorator.

    Example:
        >>> from esker.exceptions import CommitConflictError
        >>> from esker.spark.wording import in_words_of_spark
        >>> with in_words_of_spark():
        ...     raise CommitConflictError("lost the race 9 times; try again or raise max_retries")
        Traceback (most recent call last):
        ...
        esker.exceptions.CommitConflictError: lost the race 9 times; run the write again
    """
    try:
        yield
    except EskerError as error:
        told = error.message
        for argument, option in WORDING:
            told = told.replace(argument, option)
        error.message, error.args = told, (told,)
        if is_worker():
            # The process ends with this error: nothing that comes later loses its stack.
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
    except GeneratorExit:
        if is_worker():
            # Spark has what it needs, a `limit` for one, and has closed the pipe. The worker ends, and would tell of
            # the pipe that it cannot flush with a stack on stderr.
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        raise


def is_worker() -> bool:
    """Whether this is a process that Spark has started to run Python.

    Example:
        >>> from esker.spark.wording import is_worker
        >>> is_worker()
        False
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")


_RAISED = re.compile(r"(?P<module>esker(?:\.[a-z]\w*)+)\.(?P<name>[A-Z]\w*): (?P<message>[^\n]*)")
_MODE = "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"


@contextmanager
def as_raised_by_esker() -> Iterator[None]:
    """Errors of Spark that tell of one of esker's become that one: its class, and its message.

    The error of Spark stays with it, as its `__context__`. Errors of others go through as they are.

    Raises:
        EskerError: What a worker has raised.
        UnsupportedError: A save without a mode, or with one that Spark does not hand on.

    Example:
        >>> from esker.spark.wording import as_raised_by_esker
        >>> try:
        ...     with as_raised_by_esker():
        ...         raise RuntimeError("Job aborted: esker.exceptions.NotFoundError: no table at t; check the path")
        ... except FileNotFoundError as error:
        ...     print(error)
        no table at t; check the path
    """
    try:
        yield
    except EskerError:
        raise
    except Exception as error:
        told = str(error)
        if _MODE in told:
            raise UnsupportedError(
                'expected mode("append") or mode("overwrite"), found one that Spark does not hand to a Python data '
                'source; say .mode("append"), or esker.spark.write(df, uri), which has all modes'
            ) from None
        found = _RAISED.search(told)
        raised = None if found is None else _error_class(found["module"], found["name"])
        if found is None or raised is None:
            raise
        raise raised(found["message"].strip()) from None


def _error_class(module: str, name: str) -> type[EskerError] | None:
    """The class of an error of esker, wherever in esker it is."""
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and issubclass(found, EskerError) else None
