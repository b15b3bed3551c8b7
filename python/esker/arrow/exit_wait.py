"""Lets pyarrow's threads put away what is Python's before the interpreter ends.

A scan has its rows before pyarrow's threads have put away what they worked with. Where that is a file of Python, they
need the interpreter for it. A thread that asks for one that is ending is ended by force, which C++ takes for a crash:
the process aborts when all of its work is done (apache/arrow#34314).
"""

from __future__ import annotations

import atexit
import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

_FILES_S = 1.0
"""How long files are waited for: a scan alone has one, also one that was left halfway and is still referred to."""
_FILE_SYSTEMS_S = 0.1
"""How long file systems are waited for: a dataset in a global variable has one as well, and keeps it."""
_PAUSE_S = 0.002

# By their ids: not all of them can be hashed.
_files: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_file_systems: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def watch_file(file: object) -> None:
    """Has the end of the process wait until a file is put away."""
    _files[id(file)] = file


def watch_file_system(filesystem: object) -> None:
    """Has the end of the process wait a moment until a file system is put away."""
    _file_systems[id(filesystem)] = filesystem


def wait(sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic) -> None:
    """Waits until threads have put away what is watched.

    Args:
        sleep: Lets other threads run for some seconds.
        clock: Tells the time in seconds.
    """
    if not _files and not _file_systems:
        return
    gc.collect()
    for watched, seconds in ((_files, _FILES_S), (_file_systems, _FILE_SYSTEMS_S)):
        end = clock() + seconds
        while len(watched) and clock() < end:
            sleep(_PAUSE_S)
    # The thread that put the last one away may have to give the interpreter back yet.
    sleep(_PAUSE_S)


atexit.register(wait)
