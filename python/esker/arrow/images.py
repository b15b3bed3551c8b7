"""Images as Arrow extension types: where they are, their encoded bytes, or their pixels.

```
lance.arrow.image_uri                 string          ImageURIArray    -- read_uris() --> EncodedImageArray
lance.arrow.encoded_image             binary          EncodedImageArray -- to_tensor() --> FixedShapeImageTensorArray
lance.arrow.fixed_shape_image_tensor  list of pixels  FixedShapeImageTensorArray -- to_encoded() --> EncodedImageArray
```
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import urlopen

import pyarrow as pa
from pyarrow import fs

from ..exceptions import InvalidArgumentError, IOFailedError, UnsupportedError
from .extension_types import register

_TIMEOUT_S = 60


def _is_text(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))


def _is_binary(of: pa.DataType) -> bool:
    return bool(pa.types.is_binary(of) or pa.types.is_large_binary(of))


class ImageScalar(pa.ExtensionScalar):
    """An image of an array."""

    def as_py(self, **kwargs: Any) -> Any:
        """Its URI, its bytes or its pixels in one list; None if it is null."""
        return None if self.value is None else self.value.as_py(**kwargs)


class ImageURIScalar(ImageScalar):
    """The URI of an image."""


class EncodedImageScalar(ImageScalar):
    """The encoded bytes of an image."""


class FixedShapeImageTensorScalar(ImageScalar):
    """The pixels of an image."""


class ImageURIType(pa.ExtensionType):
    """URIs of images.

    Args:
        storage_type: `string` or `large_string`.

    Raises:
        InvalidArgumentError: It is another type.

    Example:
        >>> from esker.arrow import ImageURIType
        >>> ImageURIType().extension_name
        'lance.arrow.image_uri'
    """

    def __init__(self, storage_type: pa.DataType | None = None) -> None:
        storage_type = storage_type or pa.string()
        if not _is_text(storage_type):
            raise InvalidArgumentError(f"storage_type must be a string type, found {storage_type}")
        super().__init__(storage_type, "lance.arrow.image_uri")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> ImageURIType:
        del serialized
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[ImageURIArray]:
        return ImageURIArray

    def __arrow_ext_scalar_class__(self) -> type[ImageURIScalar]:
        return ImageURIScalar


class EncodedImageType(pa.ExtensionType):
    """Encoded images, of any format.

    Args:
        storage_type: `binary` or `large_binary`.

    Raises:
        InvalidArgumentError: It is another type.

    Example:
        >>> from esker.arrow import EncodedImageType
        >>> EncodedImageType().extension_name
        'lance.arrow.encoded_image'
    """

    def __init__(self, storage_type: pa.DataType | None = None) -> None:
        storage_type = storage_type or pa.binary()
        if not _is_binary(storage_type):
            raise InvalidArgumentError(f"storage_type must be a binary type, found {storage_type}")
        super().__init__(storage_type, "lance.arrow.encoded_image")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> EncodedImageType:
        del serialized
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[EncodedImageArray]:
        return EncodedImageArray

    def __arrow_ext_scalar_class__(self) -> type[EncodedImageScalar]:
        return EncodedImageScalar


class FixedShapeImageTensorType(pa.ExtensionType):
    """Pixels of images of one shape.

    Args:
        arrow_type: The type of a sample.
        shape: Height, width, and samples of a pixel; or others, at least one number.

    Raises:
        InvalidArgumentError: The shape has no number.

    Example:
        >>> import pyarrow as pa
        >>> from esker.arrow import FixedShapeImageTensorType
        >>> FixedShapeImageTensorType(pa.uint8(), (2, 2, 3)).storage_type.list_size
        12
    """

    def __init__(self, arrow_type: pa.DataType, shape: Sequence[int]) -> None:
        if not len(shape):
            raise InvalidArgumentError("expected a shape of at least one dimension, found none")
        self.shape = shape
        self.arrow_type = arrow_type
        super().__init__(pa.list_(arrow_type, math.prod(shape)), "lance.arrow.fixed_shape_image_tensor")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps({"shape": [int(length) for length in self.shape]}).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> FixedShapeImageTensorType:
        return cls(storage_type.value_type, json.loads(serialized)["shape"])

    def __arrow_ext_class__(self) -> type[FixedShapeImageTensorArray]:
        return FixedShapeImageTensorArray

    def __arrow_ext_scalar_class__(self) -> type[FixedShapeImageTensorScalar]:
        return FixedShapeImageTensorScalar


class ImageArray(pa.ExtensionArray):
    """An array of images; `from_array` makes the kind that the input is."""

    def __repr__(self) -> str:
        return f"<lance.arrow.{type(self).__name__} object at 0x{id(self):016x}>\n{self.to_pylist()!r}"

    @classmethod
    def from_array(cls, images: Any) -> Any:
        """URIs of strings, encoded images of binary values, pixels of tensors of one shape.

        Args:
            images: An array of Arrow, or an iterable of URIs; an array of images stays as it is.

        Raises:
            TypeError: It is none of these.

        Example:
            >>> from esker.arrow import ImageArray
            >>> type(ImageArray.from_array(["file:///tmp/1.png"])).__name__
            'ImageURIArray'
        """
        if isinstance(images, ImageArray):
            return images
        if isinstance(images, pa.FixedShapeTensorArray):
            of: pa.ExtensionType = FixedShapeImageTensorType(images.type.value_type, images.type.shape)
            return _of(of, images.storage)
        if isinstance(images, pa.Array):
            if _is_text(images.type):
                return _of(ImageURIType(images.type), images)
            if _is_binary(images.type):
                return _of(EncodedImageType(images.type), images)
        elif isinstance(images, Iterable):
            return ImageURIArray.from_uris(images)
        raise TypeError(f"Cannot build a ImageArray from {getattr(images, 'type', type(images))}")


class ImageURIArray(ImageArray):
    """URIs of images: paths, files, object stores that pyarrow knows, http."""

    @classmethod
    def from_uris(cls, uris: pa.Array | Iterable[str | Path]) -> ImageURIArray:
        """An array of URIs.

        Args:
            uris: An array of strings, or an iterable of strings and paths.

        Raises:
            TypeError: It is neither.

        Example:
            >>> from esker.arrow import ImageURIArray
            >>> ImageURIArray.from_uris(["file:///tmp/1.png"]).to_pylist()
            ['file:///tmp/1.png']
        """
        if isinstance(uris, pa.Array) and _is_text(uris.type):
            storage = uris
        elif isinstance(uris, Iterable) and not isinstance(uris, pa.Array):
            storage = pa.array([None if uri is None else str(uri) for uri in uris], pa.string())
        else:
            raise TypeError(f"Cannot build a ImageURIArray from {type(uris)}")
        made: ImageURIArray = _of(ImageURIType(storage.type), storage)
        return made

    def read_uris(self, storage_type: pa.DataType | None = None) -> EncodedImageArray:
        """Reads the images.

        Args:
            storage_type: `binary`, or `large_binary` for more than 2 GiB.

        Raises:
            IOFailedError: An image cannot be read; the message names it.

        Example:
            `ImageURIArray.from_uris(paths).read_uris()`
        """
        of = EncodedImageType(storage_type)
        images = [None if uri is None else _read(uri) for uri in self.storage.to_pylist()]
        made: EncodedImageArray = _of(of, pa.array(images, of.storage_type))
        return made


class EncodedImageArray(ImageArray):
    """Encoded images: PNG, JPEG or any other format, which their bytes say."""

    def __repr__(self) -> str:
        first = next((image for image in self.to_pylist() if image is not None), None)
        shown = ""
        if first is not None:
            try:
                shown = f"\n[{_pillow().open(io.BytesIO(first))!r}, ..]"
            except (UnsupportedError, OSError):
                shown = ""
        head = None if first is None else first[:30]
        return f"<lance.arrow.{type(self).__name__} object at 0x{id(self):016x}>{shown}\n{head!r}"

    def to_tensor(self, decoder: Callable[[pa.Array], Any] | None = None) -> FixedShapeImageTensorArray:
        """Decodes the images, which must all have one shape.

        Args:
            decoder: Takes the binary array, and returns a numpy array of all images or a tensor array of Arrow;
                Pillow's by default.

        Raises:
            InvalidArgumentError: Their shapes differ, or one is null.
            UnsupportedError: Pillow is needed and missing.

        Example:
            `encoded.to_tensor().to_numpy().shape`
        """
        pixels = _decoded(self.storage) if decoder is None else decoder(self.storage)
        if not isinstance(pixels, pa.FixedShapeTensorArray):
            pixels = pa.FixedShapeTensorArray.from_numpy_ndarray(pixels)
        of = FixedShapeImageTensorType(pixels.type.value_type, pixels.type.shape)
        made: FixedShapeImageTensorArray = _of(of, pixels.storage)
        return made


class FixedShapeImageTensorArray(ImageArray):
    """Pixels of images of one shape."""

    def to_numpy(self, zero_copy_only: bool = True) -> Any:
        """The pixels as one numpy array: images first, then the shape."""
        del zero_copy_only
        of = pa.fixed_shape_tensor(self.storage.type.value_type, self.type.shape)
        return pa.ExtensionArray.from_storage(of, self.storage).to_numpy_ndarray()

    def to_encoded(
        self, encoder: Callable[[Any], pa.Array] | None = None, storage_type: pa.DataType | None = None
    ) -> EncodedImageArray:
        """Encodes the images, as PNG by default.

        Args:
            encoder: Takes the numpy array of all images, and returns a binary array.
            storage_type: `binary`, or `large_binary` for more than 2 GiB.

        Raises:
            UnsupportedError: Pillow is needed and missing.

        Example:
            `tensors.to_encoded().to_tensor() == tensors`
        """
        of = EncodedImageType(storage_type)
        if encoder is not None:
            encoded = encoder(self.to_numpy())
        else:
            encoded = pa.array([_png(image) for image in self.to_numpy()], of.storage_type)
        made: EncodedImageArray = _of(EncodedImageType(encoded.type), encoded)
        return made


def _of(extension: pa.ExtensionType, storage: pa.Array) -> Any:
    return pa.ExtensionArray.from_storage(extension, storage)


def _read(uri: str) -> bytes:
    try:
        if urlparse(uri).scheme in ("http", "https"):
            with urlopen(uri, timeout=_TIMEOUT_S) as reply:
                return bytes(reply.read())
        where, path = fs.FileSystem.from_uri(uri if "://" in uri else Path(uri).absolute().as_uri())
        with where.open_input_stream(path) as stream:
            return bytes(stream.read())
    except (OSError, pa.ArrowInvalid) as error:
        raise IOFailedError(f"the image {uri} could not be read: {error}", uri=uri) from error


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise UnsupportedError(
            "No image decoder available: install pillow (pip install pillow), or pass a decoder or encoder argument"
        ) from None
    return Image


def _decoded(images: pa.Array) -> Any:
    import numpy as np

    pillow = _pillow()
    if images.null_count:
        raise InvalidArgumentError(f"expected images to decode, found {images.null_count} nulls: drop them")
    pixels = [np.asarray(pillow.open(io.BytesIO(image))) for image in images.to_pylist()]
    shapes = sorted({image.shape for image in pixels})
    if len(shapes) != 1:
        raise InvalidArgumentError(
            f"all input arrays must have the same shape, found {', '.join(map(str, shapes)) or 'no image'}"
        )
    return np.stack(pixels)


def _png(pixels: Any) -> bytes:
    with io.BytesIO() as out:
        _pillow().fromarray(pixels).save(out, format="PNG")
        return out.getvalue()


register(ImageURIType())
register(EncodedImageType())
register(FixedShapeImageTensorType(pa.uint8(), (0,)))
