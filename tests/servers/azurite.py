"""Azure's blob store, as Microsoft's own emulator plays it.

The loser of a raced `If-None-Match: *` is told 409 BlobAlreadyExists, where S3 says 412.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import secrets
from email.utils import formatdate

from . import install
from .process import Server

ACCOUNT = "devstoreaccount1"
# Printed in the emulator's documents, the same everywhere.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VERSION = "2021-12-02"


class Azurite:
    """A running Azurite.

    Example:
        with Azurite() as azure:
            esker.write_dataset(table, f"az://{azure.container()}/t", storage_options=azure.storage_options)
    """

    def __init__(self) -> None:
        options = "--blobHost 127.0.0.1 --blobPort {port} --skipApiVersionCheck --silent"
        self.server = Server(
            "azurite",
            [*install.azurite(), *options.split(), "--disableTelemetry", "--location", "{folder}"],
            environment={"AZURITE_ACCOUNTS": ""},
        )

    @property
    def storage_options(self) -> dict[str, str]:
        """What opens its tables, here and in pylance."""
        return {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": KEY,
            "azure_endpoint": f"{self.server.endpoint}/{ACCOUNT}",
            "allow_http": "true",
        }

    def container(self) -> str:
        """A new empty container."""
        name = f"t-{secrets.token_hex(6)}"
        status = self.request("PUT", f"/{ACCOUNT}/{name}", {"restype": "container"})[0]
        assert status == 201, f"expected 201 for a new container, found {status}"
        return name

    def request(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> tuple[int, bytes]:
        """One signed request: its status and body."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION, **(headers or {})}
        query = query or {}
        ours = "".join(f"{key}:{headers[key]}\n" for key in sorted(headers) if key.startswith("x-ms-"))
        resource = f"/{ACCOUNT}{path}" + "".join(f"\n{key}:{query[key]}" for key in sorted(query))
        length = str(len(body)) if body else ""
        plain = "\n".join(
            [method, "", "", length, "", "", "", "", "", headers.get("If-None-Match", ""), "", "", ours + resource]
        )
        digest = hmac.new(base64.b64decode(KEY), plain.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            asked = path + ("?" + "&".join(f"{key}={value}" for key, value in query.items()) if query else "")
            connection.request(method, asked, body=body, headers=headers)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def __enter__(self) -> Azurite:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
