"""The Rust core as Python sees it: bytes, encodings, manifests, scans. No decisions: those are made in `esker`.

Every class is frozen; the GIL is released around all work and IO; Arrow data cross by the PyCapsule interface. The
submodules are in `sys.modules` under their full names, so that `from esker._native.store import Store` works.
Errors are those of `esker.exceptions`.
"""

from . import blob as blob
from . import cleanup as cleanup
from . import compaction as compaction
from . import deletion as deletion
from . import delta as delta
from . import expr as expr
from . import fault as fault
from . import file as file
from . import graveler as graveler
from . import merge as merge
from . import scan as scan
from . import schema as schema
from . import store as store
from . import table as table
from . import write as write

__all__ = [
    "__version__",
    "blob",
    "cleanup",
    "compaction",
    "deletion",
    "delta",
    "expr",
    "fault",
    "file",
    "graveler",
    "merge",
    "scan",
    "schema",
    "store",
    "table",
    "write",
]

__version__: str
"""The version of the wheel, the crates' and Python's alike."""
