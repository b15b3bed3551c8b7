"""Compaction over many processes, under pylance's names; `LanceDataset.optimize.compact_files` is the simple way."""

from .lance.compaction.compaction import Compaction
from .lance.compaction.options import CompactionOptions
from .lance.compaction.results import CompactionMetrics, LostGroup, RewriteResult
from .lance.compaction.tasks import CompactionPlan, CompactionTask

__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "LostGroup",
    "RewriteResult",
]
