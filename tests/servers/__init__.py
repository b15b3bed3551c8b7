"""Real servers for tests: installed through this project's own files, bound to 127.0.0.1, stopped with the tests.

`python -m tests.servers` says which there are, `python -m tests.servers minio azurite` installs some ahead of the tests
that want them. What is no Python package lies in `.servers/`, or where `ESKER_SERVERS` says.
"""

from .azurite import Azurite
from .dynamodb import DynamoDBServer
from .postgres import PostgresServer
from .process import Server, free_port
from .redis import RedisServer
from .s3 import S3Server, start_s3

__all__ = [
    "Azurite",
    "DynamoDBServer",
    "PostgresServer",
    "RedisServer",
    "S3Server",
    "Server",
    "free_port",
    "start_s3",
]
