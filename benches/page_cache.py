"""Drop files from the page cache, so that the next read comes from the disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def files_of(path: Path) -> list[Path]:
    """The files of a table, which is one file or a folder."""
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


def size_of(path: Path) -> int:
    """The bytes of all files of a table."""
    return sum(file.stat().st_size for file in files_of(path))


def drop(path: Path) -> None:
    """Ask the kernel to forget the files of a table. They are flushed first: what is not yet on the disk stays."""
    for file in files_of(path):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def is_dropped(path: Path) -> bool:
    """Whether the kernel did forget: a read that may not wait for the disk finds nothing in the middle of the files."""
    for file in files_of(path):
        size = file.stat().st_size
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.preadv(descriptor, [bytearray(1)], size // 2, os.RWF_NOWAIT)
        except BlockingIOError:
            continue
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                return False
            raise
        finally:
            os.close(descriptor)
        if size > 1 << 20:
            return False
    return True


def can_drop(folder: Path) -> bool:
    """Try it on a file of our own: some file systems live in memory and have nothing to forget."""
    probe = folder / "page-cache-probe"
    probe.write_bytes(os.urandom(2 << 20))
    try:
        drop(probe)
        return is_dropped(probe)
    finally:
        probe.unlink()
