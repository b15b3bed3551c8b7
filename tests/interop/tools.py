"""The programs, and how they come here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.servers.install import room

HERE = Path(__file__).resolve().parent
PACKAGES = ["rocksdb-tools", "librocksdb7.8", "libgflags2.2", "libsnappy1v5", "libtbb12"]


def pebble() -> Path:
    """Pebble as lakeFS pins it, built by Go from its module proxy."""
    if shutil.which("go") is None:
        raise RuntimeError("Pebble is built by Go, which is not there: install Go 1.21 or newer")
    program = room() / "pebble"
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=HERE / "pebble", check=True)
    return program


def sst_dump() -> list[str]:
    """RocksDB's `sst_dump`: the machine's, or that of Debian's packages, unpacked beside the other programs."""
    found = shutil.which("sst_dump")
    if found:
        return [found]
    folder = room() / "rocksdb"
    program = folder / "usr/bin/sst_dump"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for package in PACKAGES:
            subprocess.run(["apt-get", "download", package], cwd=folder, check=True, stderr=subprocess.DEVNULL)
        for archive in folder.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(archive), str(folder)], check=True)
    libraries = os.pathsep.join(str(path) for path in folder.glob("**/*-linux-gnu"))
    return ["env", f"LD_LIBRARY_PATH={libraries}", str(program)]
