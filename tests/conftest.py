"""What all Python tests share.

pylance is the peer that they compare with: without it nothing is proved, so it is required.
"""

from __future__ import annotations

import os
from pathlib import Path

import lance  # noqa: F401
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "esker", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("esker")

# pylance warns on every write to a new path.
os.environ.setdefault("LANCE_LOG", "error")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Where a table may be made."""
    return str(tmp_path / "table.lance")
