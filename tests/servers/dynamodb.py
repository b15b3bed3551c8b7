"""A DynamoDB server: ministack from PyPI, or Amazon's own DynamoDB Local where `ESKER_DYNAMODB=local` asks for it."""

from __future__ import annotations

import os
import secrets
from importlib.metadata import version
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from . import install
from .process import Server
from .s3 import KEY as S3_KEY
from .s3 import REGION, SECRET, start_s3

# DynamoDB Local takes letters and digits only.
KEY = S3_KEY.replace("-", "")


def chosen() -> str:
    """Which server runs: "ministack" or "local"."""
    name = os.environ.get("ESKER_DYNAMODB") or "ministack"
    if name not in ("ministack", "local"):
        raise ValueError(f"ESKER_DYNAMODB: expected ministack or local, found {name!r}")
    return name


def described() -> str:
    """The same in words, for the head of a test run."""
    return f"DynamoDB of ministack {version('ministack')}" if chosen() == "ministack" else "DynamoDB Local"


class DynamoDBServer:
    """A running DynamoDB.

    Example:
        with DynamoDBServer() as dynamodb:
            DynamoDBManifestStore(dynamodb.table(), dynamodb.storage_options)
    """

    def __init__(self) -> None:
        if chosen() == "local":
            self.server = _local()
        else:
            self.server = start_s3("ministack").server

    @property
    def storage_options(self) -> dict[str, str]:
        """What finds it, here and in pylance, beside the options of the object store."""
        return {
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
            "aws_region": REGION,
            "dynamodb_endpoint": self.server.endpoint,
        }

    def client(self) -> Any:
        """boto3's client: for what tests want to see from outside."""
        return boto3.client(
            "dynamodb",
            endpoint_url=self.server.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name=REGION,
            config=Config(proxies={}),
        )

    def table(self, partition_key: str = "base_uri", sort_key: str = "version") -> str:
        """A new empty table, with the keys that Lance wants by default."""
        name = f"t-{secrets.token_hex(6)}"
        self.client().create_table(
            TableName=name,
            KeySchema=[
                {"AttributeName": partition_key, "KeyType": "HASH"},
                {"AttributeName": sort_key, "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": partition_key, "AttributeType": "S"},
                {"AttributeName": sort_key, "AttributeType": "N"},
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        return name

    def items(self, table: str) -> list[dict[str, Any]]:
        """All items of a table."""
        found: list[dict[str, Any]] = self.client().scan(TableName=table, ConsistentRead=True)["Items"]
        return found

    def __enter__(self) -> DynamoDBServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()


def _local() -> Server:
    """Amazon's own server, as a program that Java compiles on the way."""
    folder = install.dynamodb_local()
    program = Path(__file__).parent / "DynamoDBLocal.java"
    options = ["-inMemory", "-disableTelemetry", "-port", "{port}"]
    libraries = [f"-Djava.library.path={folder}", "-cp", f"{folder}/*"]
    return Server("dynamodb", ["java", *libraries, str(program), *options], seconds=120)
