"""Registers Arrow extension types by their names, which a process can do once for each name."""

from __future__ import annotations

import contextlib

import pyarrow as pa


def register(extension: pa.ExtensionType) -> None:
    """Registers an extension type, so that Arrow data that names it come as its class.

    Where another library has registered the name before (pylance has the same names), its class stays: values are the
    same, only the class of arrays that are read is the other one.

    Args:
        extension: An instance of the type, with any parameters.

    Example:
        >>> from esker.arrow.bfloat16 import BFloat16Type
        >>> from esker.arrow.extension_types import register
        >>> register(BFloat16Type())
    """
    with contextlib.suppress(pa.ArrowKeyError):
        pa.register_extension_type(extension)
