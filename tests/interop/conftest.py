"""The server that the tests of repositories share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.install import room

from .lakefs_server import LakeFS, build


@pytest.fixture(scope="session")
def lakefs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeFS]:
    """A server; each test makes repositories of its own."""
    with LakeFS(build(room()), tmp_path_factory.mktemp("lakefs")) as server:
        yield server
