"""Arrow in, Arrow out: incoming data as record batches of a table's schema, and outgoing batches. Knows no format.

Its public names are those of pylance's `lance.arrow`: bfloat16 and images as extension types. They are registered with
Arrow when one of the names is first used: Arrow takes each name once in a process, and pylance, which registers its own
when it is imported, must come first where both are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bfloat16 import BFloat16, BFloat16Array, BFloat16Scalar, BFloat16Type, bfloat16_array, cast
    from .images import (
        EncodedImageArray,
        EncodedImageScalar,
        EncodedImageType,
        FixedShapeImageTensorArray,
        FixedShapeImageTensorScalar,
        FixedShapeImageTensorType,
        ImageArray,
        ImageScalar,
        ImageURIArray,
        ImageURIScalar,
        ImageURIType,
    )
    from .pandas_bfloat16 import PandasBFloat16Array

__all__ = [
    "BFloat16",
    "BFloat16Array",
    "BFloat16Scalar",
    "BFloat16Type",
    "EncodedImageArray",
    "EncodedImageScalar",
    "EncodedImageType",
    "FixedShapeImageTensorArray",
    "FixedShapeImageTensorScalar",
    "FixedShapeImageTensorType",
    "ImageArray",
    "ImageScalar",
    "ImageURIArray",
    "ImageURIScalar",
    "ImageURIType",
    "PandasBFloat16Array",
    "bfloat16_array",
    "cast",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "pandas_bfloat16" if name.startswith("Pandas") else "images" if "Image" in name else "bfloat16"
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
