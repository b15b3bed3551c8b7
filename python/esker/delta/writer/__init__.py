"""The names of `deltalake.writer`."""

from ..properties import BloomFilterProperties, ColumnProperties, WriterProperties
from ..write.convert import convert_to_deltalake
from ..write.writer import write_deltalake

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]
