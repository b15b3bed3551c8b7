"""Names of lakeFS's Python SDK that are missing here, and what to do instead.

Using one raises UnsupportedError; so do the methods of a branch that a transaction's branch lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ..missing import MissingAttributeError, missing_from_module

_OPTIONS: Final = "there is no server to sign in to; give the store's credentials as storage_options to repository(uri)"
_ROOT: Final = "its classes are names of esker.repo; import them from there"
_REFUSED: Final = "a store that refuses raises esker.exceptions.IOFailedError; catch that"
_OFFLINE: Final = "nothing here talks HTTP to a server; catch esker.exceptions.EskerError, the root of all errors"
_FIELDS: Final = "all fields are attributes; there are none of other versions"
_STORAGE: Final = "a repository lies in one store; its URI tells which"
_PRE_SIGN: Final = "bytes are read and written through the store itself; leave it out"
_BLOCK: Final = "it acts on the branch itself; call it on repository.branch(...), before or after the block"

MISSING: Final[Mapping[str, Mapping[str, str]]] = {
    "esker.repo": {
        "Client": _OPTIONS,
        "ClientConfig": _OPTIONS,
        "ServerConfiguration": "there is no server; repository(uri).settings tells what its users have agreed on",
        "ServerStorageConfiguration": "there is no server; the store's URI and storage_options tell all of it",
        "Transaction": "a transaction is begun by a branch; write `with branch.transact(...) as tx`",
        "LakeFSDeprecationWarning": "what is deprecated warns with DeprecationWarning; filter that",
        "LakeFSIOBase": "readers and writers are io.IOBase; check for that",
        "LenientNamedTuple": "results are frozen dataclasses; use dataclasses.asdict and dataclasses.fields",
        "access_token_from_aws_iam_role": _OPTIONS,
        "from_aws_role": _OPTIONS,
        "from_web_identity": _OPTIONS,
        "generate_listing": "listings are iterators; use objects(), branches(), tags(), log() or diff()",
        "auth": _OPTIONS,
        "client": _OPTIONS,
        "config": _OPTIONS,
        "download": "there is no program to download; `esker repo` is the command line",
        "import_manager": _ROOT,
        "models": _ROOT,
        "namedtuple": "results are frozen dataclasses; use dataclasses.asdict and dataclasses.fields",
        "object": _ROOT,
        "quickstart": "there is no server to start; Repository.create(uri) makes a repository in any folder",
    },
    "esker.repo.exceptions": {
        "ServerException": _OFFLINE,
        "ForbiddenException": _REFUSED,
        "NotAuthorizedException": _REFUSED,
        "PermissionException": _REFUSED,
        "NoAuthenticationFound": _REFUSED,
        "UnsupportedCredentialsProviderType": _OPTIONS,
        "InvalidEnvVarFormat": _OPTIONS,
        "InvalidRangeException": "reading behind an object's end gives no bytes; compare with stat().size_bytes",
        "api_exception_handler": _OFFLINE,
        "handle_http_error": _OFFLINE,
    },
    "StoredObject": {"storage_id": _STORAGE},
    "RepositoryProperties": {"storage_id": _STORAGE, "unknown": _FIELDS},
    "ObjectInfo": {
        "physical_address_expiry": "addresses are not signed and do not expire; read through the store",
        "unknown": _FIELDS,
    },
    "CommonPrefix": {"unknown": _FIELDS},
    "Change": {"unknown": _FIELDS},
    "Commit": {"unknown": _FIELDS},
    "ImportStatus": {"unknown": _FIELDS},
    "ObjectReader": {"pre_sign": _PRE_SIGN},
    "ObjectWriter": {"pre_sign": _PRE_SIGN},
    "TransactionBranch": dict.fromkeys(
        ("cherry_pick", "create", "delete", "import_data", "repack", "reset_to", "revert", "transact"), _BLOCK
    ),
}
"""What is missing, by the module or the class that has it in the SDK; for each name what to do instead."""


def module_getattr(module: str) -> Callable[[str], NoReturn]:
    """A module's `__getattr__`: an UnsupportedError for the SDK's names that it lacks, AttributeError for others.

    Example:
        >>> from esker.exceptions import UnsupportedError
        >>> from esker.repo.sdk_names import module_getattr
        >>> try:
        ...     module_getattr("esker.repo")("Client")
        ... except UnsupportedError as error:
        ...     print(str(error).partition(" to ")[0])
        esker.repo has no Client: there is no server
    """

    def missing(name: str) -> NoReturn:
        advice = MISSING.get(module, {}).get(name)
        if advice is not None:
            raise missing_from_module(f"{module} has no {name}: {advice}", name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return missing


class LacksNames:
    """A class that lacks some names of the SDK: asking an object for one of them raises UnsupportedError.

    It is an AttributeError too, so that `hasattr` is False and `getattr` takes its default.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            for one in type(self).__mro__:
                advice = MISSING.get(one.__name__, {}).get(name)
                if advice is not None:
                    raise MissingAttributeError(f"{type(self).__name__} has no {name}: {advice}")
            # The AttributeError that led here, be it from within a property.
            return object.__getattribute__(self, name)
