"""How small data files are to be: `compression=` of writes, and the key of a table's config that keeps it."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from ..._native import table as native
from ...exceptions import InvalidArgumentError

Compression: TypeAlias = Literal["fast", "balanced", "small"]
COMPRESSION_KEY = "esker.compression"
DEFAULT_COMPRESSION: Compression = "balanced"


def checked_compression(name: str | None) -> Compression | None:
    """The name, if it is one.

    Args:
        name: What a caller asks for; None for nothing.

    Raises:
        InvalidArgumentError: There is no such compression.

    Example:
        >>> from esker.lance.write.compression import checked_compression
        >>> checked_compression("small")
        'small'
    """
    if name is None:
        return None
    for known in get_args(Compression):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise InvalidArgumentError(f"expected compression 'fast', 'balanced' or 'small', found {name!r}")


def compression_of(requested: str | None, base: native.Manifest | None) -> Compression:
    """How small new files of a table are to be.

    Args:
        requested: What a write asks for; None for what the table has.
        base: The table's manifest, if there is a table.

    Raises:
        InvalidArgumentError: There is no such compression.

    Example:
        `compression_of(None, manifest)`
    """
    found = checked_compression(requested)
    if found is not None:
        return found
    kept = base.config.get(COMPRESSION_KEY) if base is not None else None
    if kept is None:
        return DEFAULT_COMPRESSION
    try:
        return checked_compression(kept) or DEFAULT_COMPRESSION
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"the table's config has {COMPRESSION_KEY}: {error}; change it by update_config"
        ) from None


def compression_config(requested: str | None) -> dict[str, str]:
    """What a write that makes all rows of a table anew adds to its config.

    Example:
        >>> from esker.lance.write.compression import compression_config
        >>> compression_config("small")
        {'esker.compression': 'small'}
    """
    found = checked_compression(requested)
    return {} if found is None else {COMPRESSION_KEY: found}
