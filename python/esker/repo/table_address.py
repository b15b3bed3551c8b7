"""The one spelling of a folder of a ref: what takes the URI of a table takes it, in any process.

```
esker://<repository's URI, percent-encoded>@<ref, percent-encoded>/<path>
```

Repository and ref lie in what is a URL's authority, so their `/` and `@` are percent-encoded; the path is taken as it
is. fsspec's `esker://<ref>/<path>`, to which an option tells the repository, has no `@` there.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from ..exceptions import InvalidArgumentError
from .text import check_text

SCHEME = "esker"

_PREFIX = re.compile(rf"{SCHEME}://", re.IGNORECASE)
_WHOLE = re.compile(r"/|[a-zA-Z][a-zA-Z0-9+.-]*://")
_FORM = f"{SCHEME}://<repository, percent-encoded>@<ref, percent-encoded>/<path>"
_SAFE_IN_REF = "~^"


class TableAddress(NamedTuple):
    """What a URI names.

    Attributes:
        repository: The repository's URI, or its absolute path.
        ref: The ref expression.
        path: In the ref, without `/` at its ends; empty for all of it.
    """

    repository: str
    ref: str
    path: str


def address(repository_uri: str, ref: str, path: str = "") -> str:
    """The URI of a folder of a ref.

    Args:
        repository_uri: The repository's URI, or its absolute path.
        ref: A branch, a tag, a commit's id, or an expression over them.
        path: Of the folder; empty for all of the ref.

    Raises:
        InvalidArgumentError: The repository's path is relative, or there is no ref.

    Example:
        >>> from esker.repo.table_address import address
        >>> address("s3://bucket/lake", "feature/x", "tables/t")
        'esker://s3%3A%2F%2Fbucket%2Flake@feature%2Fx/tables/t'
    """
    check_text(ref, "a ref")
    if not ref:
        raise InvalidArgumentError(f"expected a ref for {_FORM}, found an empty string")
    place = _checked_repository(check_text(repository_uri, "the URI of a repository"))
    written = f"{SCHEME}://{quote(place, safe='')}@{quote(ref, safe=_SAFE_IN_REF)}/{path.strip('/')}"
    return written.rstrip("/")


def parse(uri: str) -> TableAddress | None:
    """What a URI names; None for what is no such URI, fsspec's `esker://<ref>/<path>` among it.

    Raises:
        InvalidArgumentError: The repository's path is relative, or something is not percent-encoded.

    Example:
        >>> from esker.repo.table_address import parse
        >>> parse("esker://s3%3A%2F%2Fbucket%2Flake@feature%2Fx/tables/t")
        TableAddress(repository='s3://bucket/lake', ref='feature/x', path='tables/t')
        >>> parse("esker://main/tables/t") is None
        True
    """
    matched = _PREFIX.match(uri)
    if matched is None:
        return None
    authority, _, path = uri[matched.end() :].partition("/")
    place, at, ref = authority.partition("@")
    if not (place and at and ref):
        return None
    if "@" in ref:
        raise InvalidArgumentError(f"{uri}: expected {_FORM}, found more than one '@'; write those of names as %40")
    return TableAddress(_checked_repository(_decoded(place, uri)), _decoded(ref, uri), path.strip("/"))


def parsed(uri: str) -> TableAddress:
    """What a URI names, where nothing else is expected.

    Raises:
        InvalidArgumentError: It is no such URI.
    """
    found = parse(uri)
    if found is None:
        raise InvalidArgumentError(
            f"expected {_FORM}, found {uri}; `Branch.store_uri` and `Reference.store_uri` write it, and fsspec alone "
            f"takes {SCHEME}://<ref>/<path>, with the option 'repository'"
        )
    return found


def _decoded(text: str, uri: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{uri}: expected percent-encoded UTF-8, found {text!r}") from error


def _checked_repository(place: str) -> str:
    if _WHOLE.match(place):
        return place
    whole = os.path.abspath(os.path.expanduser(place))
    raise InvalidArgumentError(
        f"expected a repository's URI or its absolute path, found {place!r}, which means another place in another "
        f"process; for {whole} write {SCHEME}://{quote(whole, safe='')}@<ref>/<path>"
    )
