"""What errors advise, in the words of Spark's users: options in place of Python's arguments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from esker.exceptions import EskerError

__all__ = ["WORDING", "in_words_of_spark"]

WORDING = (
    ("try again or raise max_retries", "run the write again"),
    ("try again or raise max_commit_retries", "run the write again"),
    (", or pass allow_null_loss=True to lose them", ""),
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
        raise
