"""`CompactionOptions`, which callers give, and `CompactionSettings`: those with the table's config and the defaults."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypedDict, cast

from ...exceptions import InvalidArgumentError
from ...storage_version import file_version, may_stand_together

PREFIX = "lance.compaction."
"""Prefix of the keys in a table's config that hold its own defaults."""

DEFAULT_MEMORY_LIMIT = 512 * 1024**2
"""Bytes that rewriting a group may take, beside one value."""

CompactionMode = Literal["reencode", "try_binary_copy", "force_binary_copy"]
MODES: tuple[CompactionMode, ...] = ("reencode", "try_binary_copy", "force_binary_copy")


class CompactionOptions(TypedDict, total=False):
    """The options of a compaction; `LanceDataset.optimize.compact_files` documents them."""

    target_rows_per_fragment: int | None
    max_rows_per_group: int | None
    max_bytes_per_file: int | None
    materialize_deletions: bool | None
    materialize_deletions_threshold: float | None
    num_threads: int | None
    batch_size: int | None
    io_buffer_size: int | None
    compaction_mode: CompactionMode | None
    binary_copy_read_batch_bytes: int | None
    defer_index_remap: bool | None
    max_source_fragments: int | None
    max_source_rows: int | None
    max_source_bytes: int | None
    excluded_fragment_ids: list[int] | None
    data_storage_version: str | None
    memory_limit: int | None


class CompactionOptionError(InvalidArgumentError, OSError):
    """An option that pylance refuses by an `OSError`: a number of 0, or a file version that does not fit."""


_BUDGETS = ("max_source_fragments", "max_source_rows", "max_source_bytes")
_POSITIVE = ("batch_size", "memory_limit")
_INTEGERS = (
    "target_rows_per_fragment",
    "max_rows_per_group",
    "max_bytes_per_file",
    "num_threads",
    "io_buffer_size",
    "binary_copy_read_batch_bytes",
    *_BUDGETS,
    *_POSITIVE,
)
_SWITCHES = ("materialize_deletions", "defer_index_remap")
_NOT_IN_CONFIG = ("num_threads", "excluded_fragment_ids")


@dataclass(frozen=True, kw_only=True)
class CompactionSettings:
    """The options of one compaction, each with its value.

    Raises:
        InvalidArgumentError: A number is negative, or the mode is unknown.
    """

    target_rows_per_fragment: int = 1024 * 1024
    max_rows_per_group: int = 1024
    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    num_threads: int | None = None
    batch_size: int | None = None
    io_buffer_size: int | None = None
    defer_index_remap: bool = False
    compaction_mode: CompactionMode | None = None
    binary_copy_read_batch_bytes: int = 16 * 1024**2
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: tuple[int, ...] = ()
    data_storage_version: str | None = None
    memory_limit: int = DEFAULT_MEMORY_LIMIT

    def __post_init__(self) -> None:
        for name in _INTEGERS:
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidArgumentError(f"expected {name} as a number from 0, found {value}")
        for name in _BUDGETS:
            if getattr(self, name) == 0:
                raise CompactionOptionError(f"{name} must be greater than 0, found 0; leave it out for no limit")
        for name in _POSITIVE:
            if getattr(self, name) == 0:
                raise CompactionOptionError(f"expected {name} > 0, found 0")
        if self.compaction_mode is not None and self.compaction_mode not in MODES:
            listed = ", ".join(f'"{mode}"' for mode in MODES)
            raise InvalidArgumentError(
                f'invalid compaction mode: Invalid compaction mode "{self.compaction_mode}", expected one of {listed}'
            )

    @classmethod
    def of(cls, given: Mapping[str, Any], config: Mapping[str, str], table_version: str) -> CompactionSettings:
        """The settings for what a caller gave, with a table's config for what is not given.

        Args:
            given: Options by name; None means not given.
            config: The table's config.
            table_version: The table's file version, which new files have unless another one is asked for.

        Raises:
            InvalidArgumentError: An option or a value of the config is not what it must be, or is unknown.
            TypeError: An option has another type.
            UnsupportedError: This release does not write the file version.

        Example:
            >>> from esker.lance.compaction.options import CompactionSettings
            >>> config = {"lance.compaction.target_rows_per_fragment": "500"}
            >>> CompactionSettings.of({"batch_size": 10}, config, "2.1").target_rows_per_fragment
            500
        """
        if not isinstance(given, Mapping):
            raise TypeError(f"expected compaction options as a dict, found {type(given).__name__}")
        chosen = _of_config(config)
        for name, value in given.items():
            if name not in _NAMES:
                raise InvalidArgumentError(
                    f"Invalid compaction option: {name}; expected one of {', '.join(sorted(_NAMES))}"
                )
            if value is not None:
                chosen[name] = _checked(name, value)
        wanted = file_version(chosen.get("data_storage_version") or table_version)
        if not may_stand_together(wanted, table_version):
            raise CompactionOptionError(
                f"cannot write data files in version {wanted} to a table of {table_version}: V1 and V2 storage "
                "versions cannot be mixed; leave data_storage_version out, or overwrite the table",
                file_version=wanted,
            )
        return cls(**{**chosen, "data_storage_version": wanted})

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return {**asdict(self), "excluded_fragment_ids": list(self.excluded_fragment_ids)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> CompactionSettings:
        """The settings that `to_json` described; keys of pylance that esker has no use for are passed over.

        Raises:
            InvalidArgumentError: They are not options, or not what those must be.
        """
        if not isinstance(values, Mapping):
            raise InvalidArgumentError(f"expected compaction options as an object, found {values!r}")
        known = {}
        for name, value in values.items():
            if name in _NAMES and value is not None:
                try:
                    known[name] = _checked(name, value)
                except (TypeError, ValueError) as error:
                    raise InvalidArgumentError(f"expected another value of {name}, found {value!r}: {error}") from None
        return cls(**known)


_NAMES = frozenset(field.name for field in fields(CompactionSettings))


def _checked(name: str, value: Any) -> Any:
    if name in _INTEGERS:
        return operator.index(value)
    if name in _SWITCHES and not isinstance(value, bool):
        raise TypeError(f"expected {name} as True or False, found {type(value).__name__}")
    if name == "materialize_deletions_threshold":
        return float(value)
    if name == "excluded_fragment_ids":
        if not isinstance(value, list | tuple | range):
            raise TypeError(f"expected {name} as a list, found {type(value).__name__}")
        return tuple(sorted({operator.index(number) for number in value}))
    if name in ("compaction_mode", "data_storage_version") and not isinstance(value, str):
        raise TypeError(f"expected {name} as a string, found {type(value).__name__}")
    return value


def _of_config(config: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in sorted(_NAMES - set(_NOT_IN_CONFIG)):
        text = config.get(PREFIX + name)
        if text is not None:
            found[name] = _parsed(name, text)
    return found


def _parsed(name: str, text: str) -> Any:
    told = f"Invalid value for {PREFIX}{name}: {text!r}"
    if name in _INTEGERS:
        if not (text.isascii() and text.isdigit()):
            raise InvalidArgumentError(f"{told} (expected a non-negative integer); correct it with update_config")
        return int(text)
    if name in _SWITCHES:
        if text.lower() not in ("true", "false"):
            raise InvalidArgumentError(f"{told} (expected 'true' or 'false'); correct it with update_config")
        return text.lower() == "true"
    if name == "materialize_deletions_threshold":
        try:
            return float(text)
        except ValueError:
            raise InvalidArgumentError(f"{told} (expected a number); correct it with update_config") from None
    if name == "data_storage_version":
        try:
            file_version(text)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{told}: {error}; correct it with update_config") from None
    return cast(Any, text)
