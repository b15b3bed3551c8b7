"""The names of `deltalake.writer.properties`."""

from typing import TYPE_CHECKING

from ..missing import names_of
from ..properties import BloomFilterProperties, ColumnProperties, WriterProperties

__all__ = ["BloomFilterProperties", "ColumnProperties", "WriterProperties"]

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, ["Compression", "Encoding"])
