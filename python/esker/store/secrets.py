"""Removes passwords from URLs and messages, for error messages, `repr` and pickles."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit, urlunsplit

MANIFEST_STORE = "manifest_store"
"""The storage option that names an external manifest store by its URI, which may hold a password."""


def without_password(url: str) -> str:
    """A URL with `***` in place of its password and without its query.

    Example:
        >>> from esker.store.secrets import without_password
        >>> without_password("redis://me:secret@host:6379/0?x=y")
        'redis://me:***@host:6379/0'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    return urlunsplit((parts.scheme, f"{name}{colon}{'***' if colon else ''}{at}{host}", parts.path, "", ""))


def passwordless(url: str) -> str:
    """A URL without its password and without the password parameters of its query; the user name stays.

    Example:
        >>> from esker.store.secrets import passwordless
        >>> passwordless("postgresql://me:secret@host/db?sslmode=require&sslpassword=hush")
        'postgresql://me@host/db?sslmode=require'
    """
    plain, _, query = url.partition("?")
    scheme, slashes, rest = plain.partition("://")
    place, slash, path = rest.partition("/")
    user, at, host = place.rpartition("@")
    name = user.partition(":")[0]
    kept = "&".join(part for part in query.split("&") if part and "pass" not in part.partition("=")[0].lower())
    return f"{scheme}{slashes}{name}{at if name else ''}{host}{slash}{path}{'?' if kept else ''}{kept}"


def redacted(message: str, url: str) -> str:
    """A message of a third-party library with `***` in place of the URL and of the passwords in it.

    Example:
        >>> from esker.store.secrets import redacted
        >>> redacted("no user me with secret", "redis://me:secret@host")
        'no user me with ***'
    """
    user, _, _ = url.partition("://")[2].partition("?")[0].partition("/")[0].rpartition("@")
    password = user.partition(":")[2]
    hidden = {url, password, unquote(password)} - {""}
    query = url.partition("?")[2]
    hidden |= {value for part in query.split("&") if "pass" in part and (value := part.partition("=")[2])}
    for secret in sorted(hidden, key=len, reverse=True):
        message = message.replace(secret, "***")
    return message
