"""One writer of a Delta table in a process of its own; it is run as `tests.simulation.process` is."""

from __future__ import annotations

from esker.delta.log.commit import DeltaCommit
from tests.simulation.adversity import Adversity
from tests.simulation.delta import DeltaWriter
from tests.simulation.process import Journaled, main

KINDS = [
    ("append", 4),
    ("overwrite", 1),
    ("replace", 2),
    ("numbered", 1),
    ("property", 1),
    ("checkpoint", 1),
    ("read_rows", 2),
    ("delete", 4),
    ("update", 5),
    ("merge", 6),
    ("rewrite", 2),
]


class DeltaProcessWriter(Journaled, DeltaWriter):
    """A writer of a Delta table."""


if __name__ == "__main__":
    # It notes the name of each commit before it puts it.
    noted = Adversity(0, alone=True, owner=DeltaCommit, calls=("next_bytes",))
    noted.clocks = 0.0
    with noted:
        main(DeltaProcessWriter, KINDS)
