"""The extension types of `esker.arrow`: bfloat16 and images, beside ml_dtypes, pandas, Pillow and pylance."""

from __future__ import annotations

import io
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import esker
from esker.arrow import (
    BFloat16,
    BFloat16Array,
    BFloat16Type,
    EncodedImageType,
    FixedShapeImageTensorType,
    ImageArray,
    ImageURIArray,
    ImageURIType,
    PandasBFloat16Array,
    bfloat16_array,
    cast,
)
from esker.exceptions import InvalidArgumentError, IOFailedError

ALONE = """
import esker.arrow, esker, pyarrow as pa
table = pa.table({"b": esker.arrow.bfloat16_array([1.5, None]), "u": esker.arrow.ImageURIArray.from_uris(["a", "b"])})
read = esker.write_dataset(table, "memory://alone").to_table()
assert read.equals(table) and read.schema == table.schema, read.schema
assert isinstance(read["b"].chunk(0), esker.arrow.BFloat16Array)
assert read["b"].to_pylist() == [esker.arrow.BFloat16(1.5), None]
try:
    import lance.arrow
except pa.ArrowKeyError:
    print("refused")
"""
BESIDE = """
import lance.arrow, esker, esker.arrow, pyarrow as pa
ours = esker.arrow.bfloat16_array([1.5, None])
theirs = lance.arrow.bfloat16_array([1.5, None])
table = pa.table({"b": theirs})
lance.write_dataset(table, URI)
assert esker.dataset(URI).to_table().equals(table)
assert esker.dataset(URI).to_table()["b"].chunk(0).storage.equals(ours.storage)
for number in (1e39, -1e39, 3.4028235677973366e38, 3.39e38, -3.4e38, 1e-50, 0.1, 3, True):
    here, there = esker.arrow.bfloat16_array([number]), lance.arrow.bfloat16_array([number])
    assert here.storage.equals(there.storage), number
    assert float(repr(esker.arrow.BFloat16(number))) == here[0].as_py().as_float(), number
for module in (esker.arrow, lance.arrow):
    for value in ("x", "1.5", b"1", [1]):
        for made in (module.BFloat16, lambda it: module.bfloat16_array([it])):
            try:
                made(value)
            except TypeError as error:
                assert "must be real number" in str(error)
            else:
                raise AssertionError(value)
"""


@given(st.floats(width=32))
def test_numbers_round_as_ml_dtypes_rounds_them(number: float) -> None:
    expected = ml_dtypes.bfloat16(number)
    ours = BFloat16(number)
    if np.isnan(expected):
        assert np.isnan(ours.as_float())
        assert ours != ours
        return
    assert struct.unpack("<H", ours.to_bytes()) == struct.unpack("<H", expected.tobytes())
    assert BFloat16.from_bytes(expected.tobytes()) == ours
    (floats,) = (pa.array([number], pa.float32()),)
    assert cast(floats, "bf16").to_pylist() == [ours] == bfloat16_array([number]).to_pylist()


def test_scalars_compare_and_show_their_number() -> None:
    assert str(BFloat16(1.124565)) == "1.125"
    assert str(BFloat16(1.0)) == "1"
    assert BFloat16(1.1) > BFloat16(1.0)
    assert BFloat16(1.0) <= BFloat16(1.0)
    assert BFloat16(0.0) == BFloat16(-0.0)
    assert bfloat16_array([1.0])[0] == ml_dtypes.bfloat16(1.0)
    assert hash(BFloat16(2.0)) == hash(BFloat16(2.001))
    with pytest.raises(InvalidArgumentError, match="expected 2 bytes"):
        BFloat16.from_bytes(b"a")


@pytest.mark.parametrize("of", [pa.float16(), pa.float32(), pa.float64()])
def test_arrays_are_cast_with_their_nulls_and_in_lists(of: pa.DataType) -> None:
    floats = pa.array([1.0, None, 2.5, -4.0], of)
    there = cast(floats, BFloat16Type())
    assert there.to_pylist() == [BFloat16(1.0), None, BFloat16(2.5), BFloat16(-4.0)]
    assert cast(there, of).equals(floats)
    assert cast(there.slice(2), of).equals(floats.slice(2))
    lists = pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(of, 2))
    half = cast(lists, pa.list_(BFloat16Type(), 2))
    assert cast(half, lists.type).equals(lists)
    with pytest.raises(InvalidArgumentError, match="Only support casting"):
        cast(there, pa.int32())
    with pytest.raises(InvalidArgumentError, match="Only support casting"):
        cast(pa.array(["a"]), "bfloat16")


def test_numpy_and_pandas_share_the_values() -> None:
    numbers = np.array([1.0, 2.5, 3.0], dtype=ml_dtypes.bfloat16)
    arrow = BFloat16Array.from_numpy(numbers)
    assert np.array_equal(arrow.slice(1).to_numpy(), numbers[1:])
    series = bfloat16_array([1.1, None, 3.4]).to_pandas()
    assert series[1] is None
    assert series.isna().tolist() == [False, True, False]
    assert pd.Series(series, dtype=series.dtype).equals(series)
    assert pa.array(series).equals(bfloat16_array([1.1, None, 3.4]))
    assert pd.concat([series, series]).tolist()[3] == BFloat16(1.1)
    assert PandasBFloat16Array.from_numpy(numbers)[np.array([True, False, True])].data.to_pylist()[1] == BFloat16(3.0)
    with pytest.raises(InvalidArgumentError, match="null"):
        bfloat16_array([None]).to_numpy()
    with pytest.raises(InvalidArgumentError, match="non-bfloat16"):
        BFloat16Array.from_numpy(np.zeros(1))


@pytest.fixture
def images(tmp_path: Path) -> list[str]:
    """The paths of three images of one shape."""
    paths = []
    for number in range(3):
        path = tmp_path / f"{number}.png"
        Image.fromarray(np.full((2, 3, 4), number * 40, np.uint8)).save(path)
        paths.append(str(path))
    return paths


def test_images_are_read_decoded_and_encoded_again(images: list[str], tmp_path: Path) -> None:
    uris = ImageURIArray.from_uris([images[0], f"file://{images[1]}", Path(images[2])])
    encoded = uris.read_uris()
    pixels = encoded.to_tensor()
    assert pixels.to_numpy().shape == (3, 2, 3, 4)
    assert pixels.to_numpy()[2].max() == 80
    assert pixels.to_encoded().to_tensor() == pixels
    assert ImageArray.from_array(encoded.storage.cast(pa.large_binary())).to_pylist() == encoded.to_pylist()
    table = pa.table({"uri": uris, "encoded": encoded, "pixels": pixels})
    read = esker.write_dataset(table, tmp_path / "table").to_table()
    for name in table.column_names:
        assert read[name].to_pylist() == table[name].to_pylist()
    for array in (uris, encoded, pixels):
        assert pickle.loads(pickle.dumps(array)) == array
    assert "EncodedImageArray" in repr(encoded)
    assert "PNG" in repr(encoded)


def test_images_that_cannot_be_used_are_named(images: list[str], tmp_path: Path) -> None:
    with pytest.raises(IOFailedError, match="missing"):
        ImageURIArray.from_uris([str(tmp_path / "missing.png")]).read_uris()
    other = tmp_path / "other.png"
    Image.fromarray(np.zeros((1, 1, 4), np.uint8)).save(other)
    with pytest.raises(InvalidArgumentError, match="all input arrays must have the same shape"):
        ImageURIArray.from_uris([images[0], str(other)]).read_uris().to_tensor()
    with pytest.raises(InvalidArgumentError, match="1 nulls"):
        ImageArray.from_array(pa.array([None], pa.binary())).to_tensor()
    with pytest.raises(InvalidArgumentError, match="string type"):
        ImageURIType(pa.int32())
    with pytest.raises(InvalidArgumentError, match="binary type"):
        EncodedImageType(pa.string())
    with pytest.raises(InvalidArgumentError, match="at least one dimension"):
        FixedShapeImageTensorType(pa.uint8(), ())
    with pytest.raises(TypeError, match="Cannot build a ImageArray"):
        ImageArray.from_array(pa.array([1]))


def test_a_decoder_and_an_encoder_may_be_the_callers() -> None:
    encoded = ImageArray.from_array(pa.array([b"ab", b"cd"]))

    def bytes_as_pixels(values: pa.Array) -> np.ndarray:
        return np.stack([np.frombuffer(value, np.uint8) for value in values.to_pylist()])

    pixels = encoded.to_tensor(bytes_as_pixels)
    assert pixels.to_numpy().tolist() == [[97, 98], [99, 100]]
    assert pixels.to_encoded(lambda tensor: pa.array([io.BytesIO(row.tobytes()).read() for row in tensor])) == encoded


def test_the_types_are_registered_when_they_are_used(tmp_path: Path) -> None:
    alone = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    # pylance registers its own names without asking: docs/from-pylance.md says to import it first.
    assert (alone.returncode, alone.stdout.strip()) == (0, "refused"), alone.stderr
    beside = f"URI = {str(tmp_path / 'both')!r}\n{BESIDE}"
    subprocess.run([sys.executable, "-c", beside], check=True)
    unused = "import sys, esker, pyarrow; assert 'esker.arrow.bfloat16' not in sys.modules; import lance"
    subprocess.run([sys.executable, "-c", unused], check=True)
