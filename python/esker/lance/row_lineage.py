"""The row lineage of a fragment with pylance's names: `RowIdMeta`, `RowDatasetVersionMeta` and `RowIdSequence`.

| where it lies | as JSON, ids | versions |
|---|---|---|
| in the manifest | `{"Inline": [bytes]}` | `{"inline": [bytes]}` |
| in a column of a data file | `"Column"` | `{"column": {}}` |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from json import dumps, loads
from typing import Any, ClassVar, Self

import pyarrow as pa

from .._native import table as native
from ..exceptions import InvalidArgumentError, UnsupportedError

ROW_IDS = "_rowid"
CREATED = "_row_created_at_version"
UPDATED = "_row_last_updated_at_version"


@dataclass(frozen=True)
class StoredLineage:
    """Where one sequence of a fragment's lineage is stored; for an inline one, its bytes."""

    form: str
    payload: bytes

    INLINE: ClassVar[str]
    """The JSON name of one that lies in the manifest."""
    SPILLED: ClassVar[Any]
    """The JSON value of one that lies in a column of a data file."""

    def __post_init__(self) -> None:
        if self.form == "external":
            raise UnsupportedError(
                "lineage in files that are not data files has no form in JSON; keep the fragment as it is"
            )

    @classmethod
    def of(cls, fragment: native.Fragment, sequence: str) -> Self | None:
        """A sequence of a fragment of the Rust core, None without it."""
        stored = fragment.stored_lineage(sequence)
        return None if stored is None else cls(*stored)

    def put_on(self, fragment: native.Fragment, sequence: str) -> native.Fragment:
        """The fragment of the Rust core with this sequence."""
        return fragment.with_stored_lineage(sequence, self.form, self.payload)

    def asdict(self) -> Any:
        """It as JSON values."""
        return {self.INLINE: list(self.payload)} if self.form == "inline" else self.SPILLED

    def json(self) -> str:
        """It as JSON text."""
        return dumps(self.asdict(), separators=(",", ":"))

    @classmethod
    def from_dict(cls, dict: Any) -> Self:
        """What `asdict` returned.

        Raises:
            InvalidArgumentError: It is something else.
        """
        given: Any = dict
        if given == cls.SPILLED:
            return cls("spilled", b"")
        values = given.get(cls.INLINE) if isinstance(given, Mapping) and len(given) == 1 else None
        if not isinstance(values, list) or not all(type(byte) is int and 0 <= byte < 256 for byte in values):
            raise InvalidArgumentError(
                f"Could not load {cls.__name__}: expected {{{cls.INLINE!r}: [bytes]}} or {cls.SPILLED!r}, "
                f"found {dict!r}"
            )
        return cls("inline", bytes(values))

    @classmethod
    def from_json(cls, json: str) -> Self:
        """What `json` returned.

        Raises:
            InvalidArgumentError: It is something else.
        """
        try:
            values = loads(json)
        except ValueError as error:
            raise InvalidArgumentError(f"Could not load {cls.__name__} due to error: {error}") from error
        return cls.from_dict(values)


class RowIdMeta(StoredLineage):
    """Where the stable row ids of a fragment are stored.

    Example:
        >>> from esker.fragment import RowIdMeta, RowIdSequence
        >>> RowIdMeta.from_json('"Column"').asdict()
        'Column'
        >>> RowIdSequence([5, 6]).to_inline_metadata().asdict()
        {'Inline': [10, 6, 10, 4, 8, 5, 16, 7]}
    """

    INLINE = "Inline"
    SPILLED = "Column"


class RowDatasetVersionMeta(StoredLineage):
    """Where the versions that created a fragment's rows, or changed them last, are stored.

    Example:
        >>> from esker.fragment import RowDatasetVersionMeta
        >>> RowDatasetVersionMeta.from_json('{"column":{}}').json()
        '{"column":{}}'
    """

    INLINE = "inline"
    SPILLED: ClassVar[dict[str, Any]] = {"column": {}}

    def __hash__(self) -> int:
        return hash((self.form, self.payload))


class RowIdSequence:
    """The stable row ids of one fragment, in the order of its rows: for an Update by hand whose rows keep their ids.

    Args:
        row_ids: The ids, each once.

    Raises:
        InvalidArgumentError: An id is given twice, or is negative or beyond 64 bits.
        TypeError: They are no integers, or there is a null among them.

    Example:
        >>> from esker.fragment import RowIdSequence
        >>> RowIdSequence.from_inline_metadata(RowIdSequence([7, 3]).to_inline_metadata())
        RowIdSequence([7, 3])
    """

    def __init__(self, row_ids: Iterable[int] | pa.Array) -> None:
        self._ids = _array_of_ids(row_ids)
        if len(self._ids.unique()) != len(self._ids):
            raise InvalidArgumentError(
                f"Row ids must be unique, found one that appears more than once in {len(self._ids)}"
            )

    @staticmethod
    def from_inline_metadata(metadata: RowIdMeta) -> RowIdSequence:
        """The ids that a fragment stores in the manifest.

        Raises:
            NotImplementedError: They lie elsewhere.
        """
        if metadata.form != "inline":
            raise NotImplementedError(
                "row ids stored outside the manifest cannot be read into a RowIdSequence; scan the column _rowid"
            )
        return RowIdSequence(metadata.put_on(_EMPTY, ROW_IDS).inline_row_ids())

    def to_inline_metadata(self) -> RowIdMeta:
        """The ids as a fragment stores them in the manifest."""
        return RowIdMeta("inline", (_EMPTY.with_row_ids(self._ids).stored_lineage(ROW_IDS) or ("", b""))[1])

    def to_pyarrow(self) -> pa.Array:
        """The ids, uint64."""
        return self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids.to_pylist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowIdSequence) and bool(self._ids.equals(other._ids))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = str(self._ids[:_SHOWN].to_pylist())
        if len(self._ids) > _SHOWN:
            return f"RowIdSequence({shown[:-1]}, ...], len={len(self._ids)})"
        return f"RowIdSequence({shown})"


def _array_of_ids(row_ids: Iterable[int] | pa.Array) -> pa.Array:
    if isinstance(row_ids, pa.Array | pa.ChunkedArray):
        ids = row_ids.combine_chunks() if isinstance(row_ids, pa.ChunkedArray) else row_ids
        if not pa.types.is_integer(ids.type):
            raise TypeError(f"expected an array of integers as row ids, found {ids.type}")
        if ids.null_count:
            raise TypeError("row ids must not be null, found a null; leave it out")
        try:
            return ids.cast(pa.uint64())
        except pa.ArrowInvalid as error:
            raise InvalidArgumentError(f"expected row ids of type uint64: {error}") from error
    try:
        numbers = list(row_ids)
    except TypeError as error:
        raise TypeError(f"expected an iterable of integers as row ids, found {row_ids!r}") from error
    if any(isinstance(number, int) and number < 0 for number in numbers):
        raise InvalidArgumentError(f"row ids must be non-negative, found {min(numbers)}")
    return pa.array(numbers, pa.uint64())


_SHOWN = 10
"""How many ids the text of a sequence shows."""
_EMPTY = native.Fragment(files=[], physical_rows=0)
