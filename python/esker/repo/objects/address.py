"""Addresses of objects outside the repository's root, as lakeFS writes them: always with a scheme.

```
URI       what users write: stores read escapes in it, `%20` is a space
address   what an entry holds: the name itself, without escapes
```
"""

from __future__ import annotations

import os
import re
from itertools import product
from urllib.parse import unquote_to_bytes

from ...store.s3_ddb import S3_AND_DYNAMODB, s3_uri
from ...store.stores import OBJECT_STORES, absolute

_LOCAL = "local://"
_FILE = re.compile(r"file:(?://(?:localhost)?)?(/(?:[^%?#]|%[0-9a-f]{2})*)", re.IGNORECASE | re.DOTALL)
"""What names a file of this machine. What else begins so, the store refuses."""
_SAME = {"s3a": "s3", "azure": "az", "adl": "az", "abfss": "abfs"}
_ESCAPES = str.maketrans({"%": "%25", "?": "%3F", "#": "%23"})


def address_of(uri: str) -> str:
    """The address of what lies at a path of this machine or at a URI: a lakeFS server lists no other.

    Example:
        >>> from esker.repo.objects.address import address_of
        >>> address_of("/lake/a.csv"), address_of("file:///lake/a%20b"), address_of("s3://bucket/day%3A1")
        ('local:///lake/a.csv', 'local:///lake/a b', 's3://bucket/day:1')
    """
    if matched := _FILE.fullmatch(uri):
        return _LOCAL + absolute(_decoded(matched[1]))
    if uri.lower().startswith(S3_AND_DYNAMODB):
        uri = s3_uri(uri)
    uri = absolute(uri_of(uri))
    scheme, found, rest = uri.partition("://")
    if not found:
        return _LOCAL + uri
    return f"{scheme}://{_decoded(rest)}" if scheme.lower() in OBJECT_STORES else uri


def object_address(uri: str) -> str:
    """The same of one object. Behind the last `/` of a URI of an object store stands its name as it is.

    Example:
        >>> from esker.repo.objects.address import object_address
        >>> object_address("file:///lake/a%20b"), object_address("s3://bucket/day%3A1/a%20b")
        ('local:///lake/a b', 's3://bucket/day:1/a%20b')
    """
    folder, slash, name = uri.rpartition("/")
    return address_of(uri) if _FILE.fullmatch(uri) or "://" not in folder else address_of(folder) + slash + name


def uri_of(address: str) -> str:
    """Where an object of that address lies, as other engines read it: a path of this machine, or a URI without escapes.

    Example:
        >>> from esker.repo.objects.address import uri_of
        >>> uri_of("local:///lake/a.csv"), uri_of("s3://bucket/a.csv"), uri_of("/lake/a.csv")
        ('/lake/a.csv', 's3://bucket/a.csv', '/lake/a.csv')
    """
    return address.removeprefix(_LOCAL)


def folder_uri(address: str) -> str:
    """The URI of the store that is the folder of that address: object stores read escapes in it.

    Example:
        >>> from esker.repo.objects.address import folder_uri
        >>> folder_uri("local:///lake/a%20b"), folder_uri("s3://bucket/day%3A1")
        ('/lake/a%20b', 's3://bucket/day%253A1')
    """
    place = uri_of(address)
    scheme, found, rest = place.partition("://")
    return f"{scheme}://{rest.translate(_ESCAPES)}" if found and scheme.lower() in OBJECT_STORES else place


def place_of(address: str) -> tuple[str, str]:
    """The store in which an object of that address lies, by its URI, and the object's path there.

    Example:
        >>> from esker.repo.objects.address import place_of
        >>> place_of("s3://bucket/day%3A1/a.csv")
        ('s3://bucket/day%253A1', 'a.csv')
    """
    folder, _, name = uri_of(address).rpartition("/")
    return folder_uri(folder), name


def roots_of(uri: str) -> list[str]:
    """How addresses begin that lie in the repository at a URI: as all of its names have it, and as this one does.

    Example:
        >>> from esker.repo.objects.address import roots_of
        >>> roots_of("file:///lake"), roots_of("s3a://bucket/lake/")
        (['/lake/'], ['s3://bucket/lake/', 's3a://bucket/lake/'])
    """
    address = address_of(uri)
    return [root + "/" for root in dict.fromkeys((_canonical(address), uri_of(address).rstrip("/")))]


def kept_roots(uri: str) -> list[str]:
    """The same with the escapes of the URI, too, as releases before wrote addresses: what these lead to is kept.

    Example:
        >>> from esker.repo.objects.address import kept_roots
        >>> kept_roots("s3://bucket/my%20lake")
        ['s3://bucket/my lake/', 's3://bucket/my%20lake/']
    """
    return list(dict.fromkeys([*roots_of(uri), uri.removeprefix("file://").rstrip("/") + "/"]))


def plain_root(uri: str) -> str:
    """How URIs without escapes begin, as other engines read them, that lie in the repository at a URI.

    Example:
        >>> from esker.repo.objects.address import plain_root
        >>> plain_root("/lake"), plain_root("file:///my%20lake/"), plain_root("s3+ddb://bucket/lake?ddbTableName=t")
        ('/lake/', 'file:///my lake/', 's3://bucket/lake/')
    """
    return ("file://" if _FILE.fullmatch(uri) else "") + uri_of(address_of(uri)).rstrip("/") + "/"


def own_path(uri: str, address: str) -> str | None:
    """The path below a repository's root of what an address leads to; None if it is elsewhere.

    Example:
        >>> from esker.repo.objects.address import own_path
        >>> own_path("/lake", "local:///lake/data/1/a"), own_path("/lake", "s3://lake/data/1/a")
        ('data/1/a', None)
    """
    place = uri_of(address)
    return next((place.removeprefix(root) for root in roots_of(uri) if place.startswith(root)), None)


def spelled(address: str, repository: str) -> tuple[str, bool]:
    """An address as all names of the repository have it, where it lies in it, or is above it; and whether it does.

    What garbage collection keeps it knows by its spelling, and it may know the repository by another name: a link.

    Example:
        >>> from esker.repo.objects.address import spelled
        >>> spelled("s3a://bucket/lake/data/1", "s3://bucket/lake"), spelled("s3://bucket/x", "s3://bucket/lake")
        (('s3://bucket/lake/data/1', True), ('s3://bucket/x', False))
    """
    places = dict.fromkeys((_canonical(address), uri_of(address).rstrip("/")))
    roots = [root.rstrip("/") for root in roots_of(repository)]
    for place, root in product(places, roots):
        if place == root or place.startswith(root + "/"):
            own = roots[0] + place[len(root) :]
            return (own if "://" in own else _LOCAL + own), True
    for place, root in product(places, roots):
        if root.startswith(place + "/"):
            return (place if "://" in place else _LOCAL + (place or "/")), True
    return address, False


def _canonical(address: str) -> str:
    place = uri_of(address)
    scheme, found, rest = place.partition("://")
    if not found:
        return os.path.realpath(place).rstrip("/")
    return f"{_SAME.get(scheme.lower(), scheme.lower())}://{rest}".rstrip("/")


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        # The store says what it expects.
        return text
