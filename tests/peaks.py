"""The most memory that this process has held at once, by Linux's own count.

`resource.getrusage(...).ru_maxrss` is no measure of that: a process that is started by `vfork` and `exec`, as
`subprocess` does, begins with the peak of the one that started it.
"""

from __future__ import annotations

from pathlib import Path

# For `python -c`: `peak()`, in bytes.
PEAK = """
def peak():
    return 1024 * next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
"""


def peak() -> int:
    """Bytes, since the process began or since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def forget_peak() -> int:
    """From now on the peak is that of what follows. Returns the bytes that are held now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()
