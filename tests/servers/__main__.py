"""`python -m tests.servers NAME...`: installs servers, or says which there are."""

from __future__ import annotations

import sys
import time

from . import install
from .s3 import described

INSTALLERS = {
    "minio": install.minio,
    "azurite": install.azurite,
    "mitmproxy": install.mitmdump,
    "seaweedfs": install.seaweedfs,
    "redis": install.redis_server,
    "dynamodb": install.dynamodb_local,
    "delta-spark": install.delta_spark,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in INSTALLERS]
    if unknown:
        print(f"expected some of {', '.join(INSTALLERS)}, found {', '.join(unknown)}", file=sys.stderr)
        return 2
    for name in names:
        started = time.monotonic()
        INSTALLERS[name]()
        print(f"{name}: installed in {install.room()} ({time.monotonic() - started:.0f} s)")
    print(f"S3 tests run against {described()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
