"""A lakeFS server on this machine, with its refs in memory and its objects in a folder."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

HERE = Path(__file__).resolve().parent
MODULE = "github.com/treeverse/lakefs"
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


def build(room: Path) -> Path:
    """The server's program, built by Go; `ESKER_LAKEFS` is one that is built already."""
    if found := os.environ.get("ESKER_LAKEFS"):
        return Path(found)
    program = room / "lakefs"
    if not program.exists():
        folder = room / "lakefs-module"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "lakefs" / "go.mod", folder)
        said = subprocess.run(["go", "mod", "download", "-json", MODULE], cwd=folder, capture_output=True, check=True)
        # Its checksums count for what it needs: some of that is known to no other database.
        shutil.copyfile(Path(json.loads(said.stdout)["Dir"], "go.sum"), folder / "go.sum")
        words = ["go", "build", "-mod=mod", "-buildvcs=false", "-o", str(program), f"{MODULE}/cmd/lakefs"]
        subprocess.run(words, cwd=folder, check=True)
    return program


class ServerError(Exception):
    """What the server answered instead."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status


class LakeFS:
    """A server that runs while its block does. A storage namespace `local://x` is the folder `x` of `root`."""

    def __init__(self, program: Path, root: Path) -> None:
        self.root = root / "objects"
        self.root.mkdir(parents=True)
        self._log = (root / "server.log").open("wb")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        settings = {
            "LISTEN_ADDRESS": f"127.0.0.1:{self._port}",
            "DATABASE_TYPE": "mem",
            "BLOCKSTORE_TYPE": "local",
            "BLOCKSTORE_LOCAL_PATH": str(self.root),
            "BLOCKSTORE_LOCAL_IMPORT_ENABLED": "true",
            "AUTH_ENCRYPT_SECRET_KEY": "of no importance here",
            "INSTALLATION_USER_NAME": "esker",
            "INSTALLATION_ACCESS_KEY_ID": KEY,
            "INSTALLATION_SECRET_ACCESS_KEY": SECRET,
            "COMMITTED_LOCAL_CACHE_DIR": str(root / "cache"),
            "STATS_ENABLED": "false",
            "SECURITY_CHECK_LATEST_VERSION": "false",
            "LOGGING_LEVEL": "WARN",
        }
        environment = {"PATH": os.environ["PATH"], "HOME": str(root)} | {f"LAKEFS_{k}": v for k, v in settings.items()}
        self._process = subprocess.Popen(
            [str(program), "run"], env=environment, cwd=root, stdout=self._log, stderr=self._log
        )

    def __enter__(self) -> LakeFS:
        deadline = time.monotonic() + 60
        while True:
            try:
                self.call("GET", "user")
                return self
            except (OSError, ServerError) as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.__exit__(None, None, None)
                    raise RuntimeError(Path(self._log.name).read_text()[-2000:]) from error
                time.sleep(0.2)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        self._log.close()

    def call(self, method: str, *words: str, body: Any = None, raw: bytes | None = None, **query: Any) -> Any:
        """One request of the API: JSON in and out, or bytes."""
        path = "/".join(quote(word, safe="") for word in words)
        asked = f"?{urlencode(query)}" if query else ""
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/api/v1/{path}{asked}", method=method)
        token = base64.b64encode(f"{KEY}:{SECRET}".encode()).decode()
        request.add_header("Authorization", f"Basic {token}")
        data = raw
        if body is not None:
            request.add_header("Content-Type", "application/json")
            data = json.dumps(body).encode()
        elif raw is not None:
            request.add_header("Content-Type", "application/octet-stream")
        try:
            with urllib.request.urlopen(request, data=data, timeout=60) as answer:
                found = answer.read()
                is_json = "json" in (answer.headers.get("Content-Type") or "")
        except urllib.error.HTTPError as error:
            raise ServerError(error.code, error.read().decode(errors="replace")) from error
        return json.loads(found) if is_json and found else found

    def pages(self, *words: str, **query: Any) -> Iterator[dict[str, Any]]:
        """All results of a listing."""
        after = ""
        while True:
            found = self.call("GET", *words, after=after, amount=1000, **query)
            yield from found["results"]
            if not found["pagination"]["has_more"]:
                return
            after = found["pagination"]["next_offset"]

    def create(self, name: str, *, bare: bool, default_branch: str = "main") -> Path:
        """Creates a repository in the folder of its name, and returns that."""
        body = {"name": name, "storage_namespace": f"local://{name}", "default_branch": default_branch}
        self.call("POST", "repositories", body=body, bare=str(bare).lower())
        return self.root / name
