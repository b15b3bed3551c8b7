"""The names of `deltalake.fs`."""

from .fs_handler import DeltaStorageHandler

__all__ = ["DeltaStorageHandler"]
