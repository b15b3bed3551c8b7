"""Addresses of objects outside the repository's root, as lakeFS writes them: always with a scheme."""

from __future__ import annotations

import os

_LOCAL = "local://"
_FILE = "file://"
_SAME = {"s3a": "s3"}


def address_of(uri: str) -> str:
    """The address of what lies at a path of this machine or at a URI: a lakeFS server lists no other.

    Example:
        >>> from esker.repo.objects.address import address_of
        >>> address_of("/lake/a.csv"), address_of("s3://bucket/a.csv")
        ('local:///lake/a.csv', 's3://bucket/a.csv')
    """
    path = uri.removeprefix(_FILE)
    return uri if "://" in path else _LOCAL + path


def uri_of(address: str) -> str:
    """Where an object of that address lies: a path of this machine, or a URI.

    Example:
        >>> from esker.repo.objects.address import uri_of
        >>> uri_of("local:///lake/a.csv"), uri_of("s3://bucket/a.csv"), uri_of("/lake/a.csv")
        ('/lake/a.csv', 's3://bucket/a.csv', '/lake/a.csv')
    """
    return address.removeprefix(_LOCAL)


def root_of(uri: str) -> str:
    """How addresses begin that lie in the repository at a URI.

    Example:
        >>> from esker.repo.objects.address import root_of
        >>> root_of("file:///lake"), root_of("s3://bucket/lake/")
        ('/lake/', 's3://bucket/lake/')
    """
    return uri.removeprefix(_FILE).rstrip("/") + "/"


def own_path(uri: str, address: str) -> str | None:
    """The path below a repository's root of what an address leads to; None if it is elsewhere.

    Example:
        >>> from esker.repo.objects.address import own_path
        >>> own_path("/lake", "local:///lake/data/1/a"), own_path("/lake", "s3://lake/data/1/a")
        ('data/1/a', None)
    """
    place, root = uri_of(address), root_of(uri)
    return place.removeprefix(root) if place.startswith(root) else None


def spelled(uri: str, repository: str) -> tuple[str, bool]:
    """A URI as the repository spells it where it lies in it, or is above it; and whether it does.

    What garbage collection keeps it knows by its spelling.

    Example:
        >>> from esker.repo.objects.address import spelled
        >>> spelled("s3a://bucket/lake/data/1", "s3://bucket/lake"), spelled("s3://bucket/x", "s3://bucket/lake")
        (('s3://bucket/lake/data/1', True), ('s3://bucket/x', False))
    """
    place, root, own = _place(uri), _place(repository), root_of(repository).rstrip("/")
    if place == root or place.startswith(root + "/"):
        return own + place[len(root) :], True
    if root.startswith(place + "/"):
        below = root[len(place) :]
        return (own.removesuffix(below), True) if own.endswith(below) else (uri, True)
    return uri, False


def _place(uri: str) -> str:
    path = uri.removeprefix(_FILE)
    scheme, found, rest = path.partition("://")
    if not found:
        return os.path.realpath(path).rstrip("/")
    return f"{_SAME.get(scheme.lower(), scheme.lower())}://{rest}".rstrip("/")
