"""Addresses of objects that are not below the repository's root, as lakeFS writes them: always with a scheme."""

from __future__ import annotations

_LOCAL = "local://"
_FILE = "file://"


def address_of(uri: str) -> str:
    """The address of what lies at a path of this machine or at a URI: a lakeFS server lists no other.

    Example:
        >>> from esker.repo.address import address_of
        >>> address_of("/lake/a.csv"), address_of("s3://bucket/a.csv")
        ('local:///lake/a.csv', 's3://bucket/a.csv')
    """
    path = uri.removeprefix(_FILE)
    return uri if "://" in path else _LOCAL + path


def uri_of(address: str) -> str:
    """Where an object of that address lies: a path of this machine, or a URI.

    Example:
        >>> from esker.repo.address import uri_of
        >>> uri_of("local:///lake/a.csv"), uri_of("s3://bucket/a.csv"), uri_of("/lake/a.csv")
        ('/lake/a.csv', 's3://bucket/a.csv', '/lake/a.csv')
    """
    return address.removeprefix(_LOCAL)
