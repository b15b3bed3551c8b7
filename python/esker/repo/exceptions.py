"""The names that errors have in lakeFS's SDK, for `except` clauses that were written for it.

```python
from esker.repo.exceptions import ConflictException, NotFoundException
```

Each is the class that esker's errors of that kind have or inherit from. What only a server raises
(`NotAuthorizedException`, `ServerException`...) raises `UnsupportedError`, which says what to catch instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..exceptions import (
    AlreadyExistsError,
    ConflictError,
    EskerError,
    InvalidArgumentError,
    NotCommittedError,
    NotFoundError,
    UnsupportedError,
)
from .sdk_names import module_getattr

LakeFSException: Final = EskerError
"""The root of all."""
NotFoundException: Final = NotFoundError
"""No repository, branch, tag or commit of that name."""
ObjectNotFoundException: Final = NotFoundError
"""No object at that path."""
ObjectExistsException: Final = AlreadyExistsError
"""An object is there, and the mode was `x`."""
ConflictException: Final = ConflictError
"""A branch, a tag or a repository is there already; both sides of a merge changed a path."""
BadRequestException: Final = InvalidArgumentError
"""A call that makes no sense, or would change nothing."""
UnsupportedOperationException: Final = UnsupportedError
"""Not here."""
ImportManagerException: Final = InvalidArgumentError
"""An import that was started twice, or not at all."""
TransactionException: Final = NotCommittedError
"""A transaction that could not be committed."""

__all__ = [
    "BadRequestException",
    "ConflictException",
    "ImportManagerException",
    "LakeFSException",
    "NotFoundException",
    "ObjectExistsException",
    "ObjectNotFoundException",
    "TransactionException",
    "UnsupportedOperationException",
]

if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__)
