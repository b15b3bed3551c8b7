"""Which names tags and branches may have, and where they are kept.

```
_refs/tags/{tag}.json           of the main line's folder, also for tags of versions on branches
_refs/branches/{branch}.json    a `/` in the name is written %2F
tree/{branch}/                  the branch's folder: a `/` in the name is a folder
```
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from ...exceptions import InvalidRefError

MAIN = "main"
REFS = "_refs/"
TAGS = "_refs/tags/"
BRANCHES = "_refs/branches/"
TREE = "tree/"

# pylance takes letters of all alphabets, but cannot list its tags any more once one of them has such a name.
_CHARACTERS = re.compile(r"[A-Za-z0-9._-]*")


def check_tag_name(name: str) -> str:
    """The name, checked to be one that a tag can have.

    Raises:
        InvalidRefError: It is empty, or has characters or dots where no tag can have them.

    Example:
        >>> from esker.lance.refs.names import check_tag_name
        >>> check_tag_name("v1.2-rc_3")
        'v1.2-rc_3'
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a tag as str, found {type(name).__name__}")
    fault = None
    if not name:
        fault = "Ref cannot be empty"
    elif not _CHARACTERS.fullmatch(name):
        fault = "Ref characters must be either alphanumeric, '.', '-' or '_'"
    elif name.startswith("."):
        fault = "Ref cannot begin with a dot"
    elif name.endswith("."):
        fault = "Ref cannot end with a dot"
    elif name.endswith(".lock"):
        fault = "Ref cannot end with .lock"
    elif ".." in name:
        fault = "Ref cannot have two consecutive dots"
    if fault is not None:
        raise InvalidRefError(f"Ref is invalid: {fault}, found {name!r}; choose another name for the tag", found=name)
    return name


def check_branch_name(name: str) -> str:
    """The name, checked to be one that a branch can have. `main` is that of the main line.

    Raises:
        InvalidRefError: It is empty, "main", or has characters, dots or slashes where no branch can have them.

    Example:
        >>> from esker.lance.refs.names import check_branch_name
        >>> check_branch_name("feature/login")
        'feature/login'
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a branch as str, found {type(name).__name__}")
    fault = None
    if not name:
        fault = "Branch name cannot be empty"
    elif name == MAIN:
        fault = '"main" is reserved for the default branch'
    elif name.startswith("/") or name.endswith("/"):
        fault = "Branch name cannot start or end with a '/'"
    elif "//" in name:
        fault = "Branch name cannot contain consecutive '/'"
    elif ".." in name or "\\" in name:
        fault = "Branch name cannot contain '..' or '\\'"
    elif any(segment == "." for segment in name.split("/")):
        fault = "Branch name cannot have the segment '.'"
    elif name.endswith(".lock"):
        fault = "Branch name cannot end with '.lock'"
    else:
        wrong = [segment for segment in name.split("/") if not _CHARACTERS.fullmatch(segment)]
        if wrong:
            fault = (
                f"Branch segment {wrong[0]!r} contains invalid characters. Only alphanumeric, '.', '-', '_' are allowed"
            )
    if fault is not None:
        raise InvalidRefError(f"Ref is invalid: {fault}, found {name!r}; use a different branch name", found=name)
    return name


def tag_path(name: str) -> str:
    """Where a tag is kept, from the folder of the main line.

    Example:
        >>> from esker.lance.refs.names import tag_path
        >>> tag_path("v1")
        '_refs/tags/v1.json'
    """
    return f"{TAGS}{name}.json"


def branch_path(name: str) -> str:
    """Where a branch is kept, from the folder of the main line.

    Example:
        >>> from esker.lance.refs.names import branch_path
        >>> branch_path("feature/login")
        '_refs/branches/feature%2Flogin.json'
    """
    return f"{BRANCHES}{name.replace('/', '%2F')}.json"


def branch_folder(name: str) -> str:
    """The folder of a branch's versions and files, from the folder of the main line.

    Example:
        >>> from esker.lance.refs.names import branch_folder
        >>> branch_folder("feature/login")
        'tree/feature/login/'
    """
    return f"{TREE}{name}/"


def name_of(path: str, folder: str) -> str | None:
    """The name of the tag or branch that is kept at a path, None if it is neither."""
    if not path.startswith(folder) or not path.endswith(".json"):
        return None
    # Some stores turn %2F into a folder.
    return unquote(path.removeprefix(folder).removesuffix(".json"))
