"""Hooks: what users run before and after commits and merges of their own handle. Other clients do not run them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, Protocol, TypeAlias, get_args

from ..commit.loop import follow
from ..exceptions import InvalidArgumentError
from .refs.commits import Commit

EventType = Literal["pre-commit", "post-commit", "pre-merge", "post-merge"]


class Event(Protocol):
    """What hooks are called with: `committing.hook_event.HookEvent`, which knows more than this room may."""

    @property
    def type(self) -> EventType:
        """When the hook is called."""

    @property
    def branch(self) -> str:
        """The branch that changes."""

    @property
    def commit(self) -> Commit:
        """The commit."""


AnyHook: TypeAlias = Callable[..., None]
"""Called with an event."""


class Hooks:
    """The hooks of one handle of a repository."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[AnyHook]] = {}

    def add(self, type: EventType, hook: AnyHook) -> None:
        """Adds a hook. One that is called before may raise, and nothing happens; it is called again if another writer
        was faster and the commit is made anew. One that is called after and raises is a warning."""
        if type not in get_args(EventType):
            raise InvalidArgumentError(f"expected an event among {get_args(EventType)}, found {type!r}")
        if not callable(hook):
            raise InvalidArgumentError(f"expected a hook that can be called, found {hook!r}")
        self._hooks.setdefault(type, []).append(hook)

    def has(self, type: EventType) -> bool:
        """Whether there are hooks of an event."""
        return bool(self._hooks.get(type))

    def run(self, event: Event) -> None:
        """Calls the hooks of an event, in the order in which they were added."""
        for hook in self._hooks.get(event.type, []):
            hook(event)

    def run_after(self, event: Event) -> None:
        """Calls the hooks of what has happened. One that raises is a warning: the commit is there and stays."""
        for hook in self._hooks.get(event.type, []):
            follow(partial(hook, event), f"{event.commit.id[:12]} of {event.branch}")
