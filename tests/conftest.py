"""What all Python tests share.

pylance is the peer that they compare with: without it nothing is proved, so it is required. Its extension types are
registered with Arrow first: it refuses to be the second.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance.arrow  # noqa: F401
import pytest
from hypothesis import HealthCheck, settings

from esker.store import stores
from tests import schedule
from tests.faulty import Faulty
from tests.servers import (
    Azurite,
    DynamoDBServer,
    PostgresServer,
    RedisServer,
    S3Server,
    dynamodb,
    postgres,
    redis,
    start_s3,
)
from tests.servers.s3 import described

settings.register_profile(
    "esker", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("esker")

# A shell's background job ignores Ctrl-C, and so do its children, of which some tests interrupt themselves.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# pylance warns on every write to a new path.
os.environ.setdefault("LANCE_LOG", "error")
os.environ.setdefault("JDK_JAVA_OPTIONS", schedule.QUICK_JAVA)
schedule.in_memory()
schedule.keep_bytecode()


@pytest.fixture
def faulty() -> Iterator[Faulty]:
    """A store that fails on purpose, behind `fault://` URIs."""
    found = Faulty()
    stores.register("fault", found)
    yield found
    del stores._factories["fault"]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Where a table may be made."""
    return str(tmp_path / "table.lance")


def pytest_report_header() -> str:
    """Which servers this run proves things against."""
    others = ", ".join((dynamodb.described(), redis.program()[1], postgres.programs()[1]))
    return f"S3 server: {described()}; others: {others}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A parallel run starts with what takes longest."""
    if hasattr(config, "workerinput"):
        schedule.longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> schedule.UnitScheduling | None:
    """`--dist loadfile` keeps together what shares a session, and takes tests in the order of the collection."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return schedule.UnitScheduling(config, log)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server; each test makes its own bucket. `ESKER_S3` chooses another."""
    with start_s3() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket that the environment leads to."""
    for key, value in s3.storage_options.items():
        monkeypatch.setenv(key.upper(), value)
    return f"s3://{s3.bucket()}"


@pytest.fixture(scope="session")
def azure() -> Iterator[Azurite]:
    """An Azure blob server; each test makes its own container."""
    with Azurite() as server:
        yield server


@pytest.fixture(scope="session")
def dynamodb_server() -> Iterator[DynamoDBServer]:
    """A DynamoDB server; each test makes its own table."""
    with DynamoDBServer() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Redis server; each test has its own prefix."""
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server; each test has its own table."""
    with PostgresServer() as server:
        yield server
