"""The names that errors have in lakeFS's SDK, for `except` clauses that were written for it.

```python
from esker.repo.exceptions import ConflictException, NotFoundException
```

Each stands for the error, or the errors, that esker raises in its place. What only a server says
(`NotAuthorizedException`, `ForbiddenException`, `ServerException`...) has no name here: a store's refusal is an
`IOFailedError`.
"""

from __future__ import annotations

from typing import Final

from ..exceptions import (
    AlreadyExistsError,
    CommitConflictError,
    EskerError,
    InvalidArgumentError,
    NotFoundError,
    UnsupportedError,
)
from .errors import NoChangesError

LakeFSException: Final = EskerError
"""The root of all."""
NotFoundException: Final = NotFoundError
"""No repository, branch, tag or commit of that name."""
ObjectNotFoundException: Final = NotFoundError
"""No object at that path."""
ObjectExistsException: Final = AlreadyExistsError
"""An object is there, and the mode was `x`."""
ConflictException: Final = (AlreadyExistsError, CommitConflictError)
"""A branch, a tag or a repository is there already; both sides of a merge changed a path."""
BadRequestException: Final = InvalidArgumentError
"""A call that makes no sense, or would change nothing."""
UnsupportedOperationException: Final = UnsupportedError
"""Not here."""
ImportManagerException: Final = InvalidArgumentError
"""An import that was started twice, or not at all."""
TransactionException: Final = (CommitConflictError, NoChangesError)
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
