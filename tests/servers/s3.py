"""An S3 server: MinIO where it has been built, ministack from PyPI elsewhere.

Both let exactly one of many raced conditional puts win; `tests/test_servers.py` proves it for the one that runs.
"""

from __future__ import annotations

import json
import os
import secrets
from importlib.metadata import version
from typing import Any

import boto3
from botocore.config import Config

from . import install
from .process import Server, free_port, python

KEY = "esker-test-key"
SECRET = "esker-test-secret"
REGION = "us-east-1"


def chosen() -> str:
    """Which server `start_s3` starts: what `ESKER_S3` says, or MinIO where it has been built, or ministack."""
    name = os.environ.get("ESKER_S3") or ("minio" if install.minio_if_built() else "ministack")
    if name not in ("minio", "ministack", "seaweedfs"):
        raise ValueError(f"ESKER_S3: expected minio, ministack or seaweedfs, found {name!r}")
    return name


def described() -> str:
    """The same in words, for the head of a test run."""
    if chosen() == "ministack":
        why = "" if install.minio_if_built() else " (MinIO is not built: python -m tests.servers minio)"
        return f"ministack {version('ministack')}{why}"
    return chosen()


class S3Server:
    """A running S3 server.

    Example:
        with start_s3() as s3:
            esker.write_dataset(table, f"s3://{s3.bucket()}/t", storage_options=s3.storage_options)
    """

    def __init__(self, server: Server, key: str = KEY, secret: str = SECRET) -> None:
        self.name = server.name
        self.server = server
        self.key = key
        self.secret = secret

    @property
    def endpoint(self) -> str:
        return self.server.endpoint

    @property
    def storage_options(self) -> dict[str, str]:
        """What opens its tables, here and in pylance."""
        return {
            "aws_access_key_id": self.key,
            "aws_secret_access_key": self.secret,
            "aws_region": REGION,
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
        }

    def client(self, **config: Any) -> Any:
        """boto3's client: for what tests want to see from outside."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            region_name=REGION,
            config=Config(proxies={}, s3={"addressing_style": "path"}, **config),
        )

    def bucket(self) -> str:
        """A new empty bucket."""
        name = f"t-{secrets.token_hex(6)}"
        self.client().create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """The keys in a bucket, in byte order."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return sorted((item["Key"] for page in pages for item in page.get("Contents", ())), key=str.encode)

    def __enter__(self) -> S3Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()


def start_s3(name: str | None = None) -> S3Server:
    """Starts an S3 server with nothing in it.

    Args:
        name: minio, ministack or seaweedfs; see `chosen`.
    """
    return {"minio": _minio, "ministack": _ministack, "seaweedfs": _seaweedfs}[name or chosen()]()


def _minio() -> S3Server:
    command = [str(install.minio()), "server", "--quiet", "--address", "127.0.0.1:{port}", "{folder}/data"]
    environment = {
        "MINIO_ROOT_USER": KEY,
        "MINIO_ROOT_PASSWORD": SECRET,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
        "MINIO_CALLHOME_ENABLE": "off",
        "HOME": "{folder}",
    }
    return _ready(S3Server(Server("minio", command, environment=environment)))


def _ministack() -> S3Server:
    environment = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": "{port}",
        "LOG_LEVEL": "WARNING",
        # What it would call on is not needed here.
        "DOCKER_HOST": "unix://{folder}/none",
        "TMPDIR": "{folder}",
    }
    return _ready(S3Server(Server("ministack", python("-m", "ministack.app"), environment=environment)))


def _seaweedfs() -> S3Server:
    """By hand, with `ESKER_S3=seaweedfs`: its listing is not in byte order, and of its conditions one does not hold."""
    identity = {"name": "t", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
    config = json.dumps({"identities": [identity]}).replace("{", "{{").replace("}", "}}")
    ports = " ".join(
        f"-{part}={free_port()}"
        for service in ("master", "volume", "filer", "s3")
        for part in (f"{service}.port", f"{service}.port.grpc")
        if part != "s3.port"
    )
    start = (
        f"printf %s '{config}' > s3.json && exec {install.seaweedfs()} server -ip=127.0.0.1 -ip.bind=127.0.0.1 "
        "-dir={folder} -s3 -s3.port={port} -s3.config=s3.json "
        # Each bucket takes volumes of its own.
        f"-master.volumeSizeLimitMB=64 -volume.max=2000 {ports}"
    )
    return _ready(S3Server(Server("seaweedfs", ["sh", "-c", start], seconds=120)))


def _ready(server: S3Server) -> S3Server:
    """Waits until it does what it is for: an open port is not yet a server that answers."""
    try:
        server.client(retries={"max_attempts": 20, "mode": "standard"}).list_buckets()
    except BaseException:
        server.server.stop()
        raise
    return server
