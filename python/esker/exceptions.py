"""Every error that esker raises: one root, and one class for each kind of response by the caller (docs/errors.md).

```
EskerError
├── InvalidArgumentError   ValueError                      fix the call
│   ├── SchemaMismatchError    OSError                     give the data the table's schema
│   ├── InvalidChangeError     OSError                     change what is to be changed, or the data
│   ├── InvalidTypeError       TypeError                   fix the call: it has another type, or no such argument
│   ├── OutOfRangeError        IndexError, OSError         ask for rows that exist
│   ├── TaggedVersionsError    OSError                     remove the tags, or keep these versions
│   ├── OutsideBasesError      OSError                     say that the blobs may stay where they are, or copy them
│   └── InvalidRefError        OSError                     choose another name for the tag or branch
├── UnsupportedError       NotImplementedError             newer than this release, or not written yet
│   └── OldTableError          OSError                     bring the table to the layout that is named
├── CorruptFileError       ValueError                      restore the file
├── NotFoundError          ValueError, LookupError, FileNotFoundError   fix the path or the version
├── IOFailedError          OSError                         try again, or look at the store
│   └── CommitStateUnknownError                            look for the transaction before you try again
├── ConflictError                                          somebody was there first
│   ├── AlreadyExistsError     FileExistsError             another path, or another mode
│   ├── RefConflictError       ValueError, OSError         another name, or what refers to it first
│   └── CommitConflictError    OSError                     open the newest version and do it again
└── NotCommittedError                                      nothing became visible
    └── CommitConflictError                                the same class, under both
```

Each class is also a subclass of the builtin that a caller would expect and that pylance raises in the same place, so
that `except` clauses written for pylance keep working. Facts (path, column, version...) are attributes, not only text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

__all__ = [
    "AlreadyExistsError",
    "CommitConflictError",
    "CommitStateUnknownError",
    "ConflictError",
    "CorruptFileError",
    "EskerError",
    "IOFailedError",
    "InvalidArgumentError",
    "InvalidChangeError",
    "InvalidRefError",
    "InvalidTypeError",
    "NotCommittedError",
    "NotFoundError",
    "OldTableError",
    "OutOfRangeError",
    "OutsideBasesError",
    "RefConflictError",
    "SchemaMismatchError",
    "TaggedVersionsError",
    "UnsupportedError",
]


class EskerError(Exception):
    """The root of all errors of esker.

    Args:
        message: What went wrong: lower case, "expected X, found Y", then what to do.
        **facts: The facts in the message (`path`, `uri`, `column`, `version`, `operation`...). Each becomes an
            attribute; `facts` holds all of them.

    Example:
        >>> from esker.exceptions import EskerError, NotFoundError
        >>> try:
        ...     raise NotFoundError("no table here, check the path", uri="/tmp/none")
        ... except EskerError as error:
        ...     print(error.kind, error.uri, isinstance(error, FileNotFoundError))
        not_found /tmp/none True
    """

    kind: ClassVar[str] = "error"
    """A stable name of the class for programs; the same word as the error kind in Rust."""

    def __init__(self, message: str = "", /, **facts: Any) -> None:
        # One argument only: OSError, a base of some classes, takes two or more for (errno, strerror).
        super().__init__(message)
        self.message = message
        self.facts = {name: value for name, value in facts.items() if value is not None}
        for name, value in self.facts.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """A fact that this error does not have reads as None, so that callers need no `hasattr`."""
        if name in _FACTS:
            return None
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.facts)


# The facts that errors of esker may have. One that is absent reads as None.
_FACTS = frozenset(
    {
        "column",
        "expected",
        "file_version",
        "found",
        "offset",
        "operation",
        "other_operation",
        "other_version",
        "path",
        "retryable",
        "transaction",
        "type",
        "uri",
        "version",
    }
)


def _rebuild(cls: type[EskerError], message: str, facts: dict[str, Any]) -> EskerError:
    return cls(message, **facts)


class InvalidArgumentError(EskerError, ValueError):
    """An argument is invalid: an unknown mode, a filter that does not parse, a column that does not exist."""

    kind: ClassVar[str] = "invalid_argument"


class SchemaMismatchError(InvalidArgumentError, OSError):
    """The data do not have the table's schema. Facts: `column`, `expected`, `found`."""

    kind: ClassVar[str] = "schema_mismatch"


class InvalidChangeError(InvalidArgumentError, OSError):
    """The table, or the data, do not allow a change; nothing was changed. Facts: `column`."""

    kind: ClassVar[str] = "invalid_change"


@contextmanager
def of_changes() -> Iterator[None]:
    """Makes invalid arguments those of a change, which pylance raises as an OSError: an `InvalidChangeError`.

    A damaged file that a change meets is a `DamagedFileError`, and what cannot be written an `UnsupportedChangeError`.

    Example:
        >>> from esker.exceptions import InvalidArgumentError, of_changes
        >>> try:
        ...     with of_changes():
        ...         raise InvalidArgumentError("no column 'x'", column="x")
        ... except OSError as error:
        ...     print(error, error.column)
        no column 'x' x
    """
    try:
        with of_files():
            yield
    except (InvalidArgumentError, UnsupportedError) as error:
        refused: EskerError
        if type(error) is InvalidArgumentError:
            refused = InvalidChangeError(error.message, **error.facts)
        elif type(error) is UnsupportedError:
            refused = UnsupportedChangeError(error.message, **error.facts)
        else:
            raise
        raise refused.with_traceback(error.__traceback__) from (error.__cause__ or error.__context__)


class MissingBlobColumnError(InvalidArgumentError, RuntimeError):
    """A column of blobs that the table does not have: pylance raises a RuntimeError. Facts: `column`."""


class InvalidTypeError(InvalidArgumentError, TypeError):
    """An argument has another type than it must have, or there is no such argument."""

    kind: ClassVar[str] = "invalid_type"


class OutOfRangeError(InvalidArgumentError, IndexError, OSError):
    """A row number beyond the end of the table. Facts: `found` (the number), `expected` (how many rows there are)."""

    kind: ClassVar[str] = "out_of_range"


class OutsideBasesError(InvalidArgumentError, OSError):
    """A blob of an object that lies below no base path of the table. Facts: `column`, `uri`."""

    kind: ClassVar[str] = "outside_bases"


class TaggedVersionsError(InvalidArgumentError, OSError):
    """Tags keep versions that a clean-up would remove otherwise. Facts: `uri`, `version` (the oldest of them)."""

    kind: ClassVar[str] = "tagged_versions"


class InvalidRefError(InvalidArgumentError, OSError):
    """No tag or branch of a table can have this name. Facts: `found` (the name)."""

    kind: ClassVar[str] = "invalid_ref"


class UnsupportedError(EskerError, NotImplementedError):
    """A table or file was written by a newer writer, or a feature is not supported yet."""

    kind: ClassVar[str] = "unsupported"


class UnsupportedChangeError(UnsupportedError, OSError):
    """A change, or data to be written, that this release does not support: pylance raises an OSError."""


class OldTableError(UnsupportedError, OSError):
    """The table has a layout from before what is asked for. Facts: `uri`."""

    kind: ClassVar[str] = "old_table"


class CorruptFileError(EskerError, ValueError):
    """A file is damaged. Facts: `path`, and if known `offset`, `expected`, `found`."""

    kind: ClassVar[str] = "corrupt"


class DamagedFileError(CorruptFileError, OSError):
    """A damaged file in a place where pylance raises an OSError: a reader of one file, a take, a change."""


@contextmanager
def of_files() -> Iterator[None]:
    """Makes a damaged file an OSError, where pylance raises one: a `DamagedFileError`.

    Example:
        >>> from esker.exceptions import CorruptFileError, of_files
        >>> try:
        ...     with of_files():
        ...         raise CorruptFileError("corrupt a.lance", path="a.lance")
        ... except OSError as error:
        ...     print(error, isinstance(error, CorruptFileError))
        corrupt a.lance True
    """
    try:
        yield
    except CorruptFileError as error:
        if type(error) is not CorruptFileError:
            raise
        damaged = DamagedFileError(error.message, **error.facts)
        raise damaged.with_traceback(error.__traceback__) from (error.__cause__ or error.__context__)


class NotFoundError(EskerError, ValueError, LookupError, FileNotFoundError):
    """There is no such table, version, file or transaction. Facts: `uri`, `path`, `version`."""

    kind: ClassVar[str] = "not_found"


class ConflictError(EskerError):
    """Somebody was there first: what is to be created exists, or another writer's commit leaves no room for ours.

    Raised as one of the classes below it.
    """

    kind: ClassVar[str] = "conflict"


class NotCommittedError(EskerError):
    """Nothing was committed, and nothing of ours became visible: a conflict, or in a repository no changes.

    Raised as one of the classes below it.
    """

    kind: ClassVar[str] = "not_committed"


class AlreadyExistsError(ConflictError, FileExistsError):
    """What was to be created exists already. Facts: `uri`, `path`."""

    kind: ClassVar[str] = "already_exists"


class IOFailedError(EskerError, OSError):
    """A store failed; nothing is known to be wrong with the data. Facts: `path`, `uri`."""

    kind: ClassVar[str] = "io"


class CommitStateUnknownError(IOFailedError):
    """It is not known whether a commit landed: the store failed, or versions were cleaned up, before that was known.

    The staged files are kept. Facts: `uri`, `version` (the number under which it was put), `transaction` (the id to
    look for: `LanceDataset.find_transaction` finds it in a Lance table; it is `txnId` in the history of a Delta table).
    """

    kind: ClassVar[str] = "commit_state_unknown"


class RefConflictError(ConflictError, ValueError, OSError):
    """A tag or branch of this name exists already, or others refer to the branch that is to be deleted.

    Facts: `uri`, `path`.
    """

    kind: ClassVar[str] = "ref_conflict"


class CommitConflictError(ConflictError, NotCommittedError, OSError):
    """Another writer's commit conflicts with ours; nothing of ours became visible.

    Facts: `operation` and `version` (our operation and its base version), `other_operation` and `other_version` (the
    commit of the other writer), `retryable` (True: the same call on the newest version can succeed).
    """

    kind: ClassVar[str] = "commit_conflict"

    def __init__(self, message: str = "", /, **facts: Any) -> None:
        # A lock of the user's raises it without a word; pylance names the class then.
        super().__init__(message or "CommitConflictError: another writer has this version, or its lock", **facts)
