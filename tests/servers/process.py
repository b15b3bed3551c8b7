"""A server as a child process: started on a free port, waited for, stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A running server. Leaving the `with` block stops it and deletes its folder.

    Args:
        name: What runs, for messages.
        command: Its program and arguments; `{port}` and `{folder}` stand for the port and an empty folder of its own.
        environment: Added to this process's; the same two names are filled in.
        seconds: How long it may take until the port answers.
        user: Whose process it is; this one's by default.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        seconds: float = 60,
        user: str | None = None,
    ) -> None:
        self.name = name
        self.port = free_port()
        self._folder = tempfile.TemporaryDirectory(prefix=f"esker-{name}-", ignore_cleanup_errors=True)
        self.folder = Path(self._folder.name)
        fill = {"port": self.port, "folder": self.folder}
        self.log = self.folder / "server.log"
        # A proxy between this machine and the world is not one between two of its processes.
        added = {"NO_PROXY": "127.0.0.1,localhost"} | {
            key: value.format(**fill) for key, value in (environment or {}).items()
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [part.format(**fill) for part in command],
                env={**os.environ, **added},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # The interrupt of a terminal is for the tests, which then stop it.
                start_new_session=True,
                user=user,
            )
        try:
            self._wait(seconds)
        except BaseException:
            self.stop()
            raise

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not start on port {self.port}: {self.tail()}")

    def tail(self) -> str:
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""

    def stop(self) -> None:
        """Stops it, and what it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
        self._folder.cleanup()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def python(*arguments: str) -> list[str]:
    """A command that this environment's Python runs."""
    return [sys.executable, *arguments]
