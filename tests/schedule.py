"""Where, in which order and on which worker a parallel run takes its tests."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 << 30
"""What a whole run may have at once in its folders: a tenth of it, and the largest tables of the memory tests."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Sessions of Spark that live for seconds spend most of their time in the JVM's second compiler, and in verifying
classes."""

LONGEST = (
    "tests/spark",
    "tests/test_docs.py",
    "tests/test_examples.py",
    "tests/test_repository_object_stores.py",
    "tests/test_delta_interrupts.py",
    "tests/test_crash_commits.py",
    "tests/test_demo.py",
    "tests/test_tables_on_branches_crash_points.py",
    "tests/test_delta_copies_of_verbs.py",
    "tests/test_delta_column_copies.py",
    "tests/test_fuzz_changes.py",
    "tests/test_fuzz_delta.py",
    "tests/test_fuzzing_scans.py",
    "tests/test_compaction_memory.py",
    "tests/test_delta_many_processes.py",
    "tests/test_delta_stores.py",
    "tests/test_delta_verb_faults.py",
    "tests/test_tables_on_branches_model.py",
    "tests/test_compaction_faults.py",
    "tests/test_compaction_processes.py",
    "tests/test_crash_points.py",
    "tests/test_tables_transplant_faults.py",
    "tests/test_memory.py",
    "tests/test_concurrency.py",
    "tests/test_scattered_rows.py",
    "tests/test_crash_object_stores.py",
    "tests/test_s3_dynamodb.py",
    "tests/test_benches.py",
    "tests/test_tables_on_branches_processes.py",
    "tests/test_many_processes.py",
    "tests/test_merge_insert_memory.py",
    "tests/test_delta_verb_memory.py",
    "tests/test_delta_mixed_turns.py",
    "tests/test_simulation.py",
    "tests/test_tables_transplant_model.py",
    "tests/test_delta_merge_beside_theirs.py",
    "tests/test_delta_hostile.py",
    "tests/test_delta_file_rows.py",
    "tests/test_delta_statistics.py",
    "tests/test_properties.py",
    "tests/test_filters_of_lists.py",
    "tests/test_filters_in_steps.py",
    "tests/test_merge_insert_properties.py",
    "tests/test_repository_hostile_records.py",
)
"""What takes longest starts first: a file of one slow test at the end would hold up a run whose others are done."""


def in_memory() -> None:
    """Puts temporary folders into memory, where there is room: a commit waits for the disk several times.

    What a process asks of its files is the same there, and so is what a process that is killed leaves behind.
    """
    if "TMPDIR" in os.environ or not MEMORY.is_dir():
        return
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize >= ROOM_BYTES and os.access(MEMORY, os.W_OK | os.X_OK):
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


def keep_bytecode() -> None:
    """Has Python keep what it compiles, also where an image says not to: each process that a test starts, and each
    worker of Spark, would compile some four hundred modules of esker."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def unit(nodeid: str) -> str:
    """What goes to one worker whole: a file, and all tests of Spark, which share a session."""
    file = nodeid.partition("::")[0]
    return "tests/spark" if file.startswith("tests/spark/") else file


def longest_first(items: list[pytest.Item]) -> None:
    """Sorts tests by how long their units take: those that are listed, then those of most tests."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    counts = Counter(unit(item.nodeid) for item in items)
    items.sort(
        key=lambda item: (ranks.get(unit(item.nodeid), len(ranks)), -counts[unit(item.nodeid)], unit(item.nodeid))
    )


class UnitScheduling(LoadFileScheduling):
    """Gives units to workers, in the order of the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
