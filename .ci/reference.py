"""What the reference pages need to know of this package: griffe reads it without importing it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)


class DocstringExamples(griffe.Extension):
    """Shows examples as code: docstrings here say `Example:`, griffe's Google style knows `Examples:` alone."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each object that has been read."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub("Examples:", obj.docstring.value)


class SharedArguments(griffe.Extension):
    """Spells out `**options: Unpack[Arguments]`: a reader wants the arguments, not the name of their list."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Called when all modules of a package have been read."""
        for function in _functions(pkg):
            for parameter in list(function.parameters):
                annotation = parameter.annotation
                if (
                    parameter.kind is griffe.ParameterKind.var_keyword
                    and isinstance(annotation, griffe.ExprSubscript)
                    and str(annotation.left) == "Unpack"
                    and isinstance(annotation.slice, griffe.ExprName)
                ):
                    rest = function.parameters[parameter.name]
                    del function.parameters[parameter.name]
                    for name, kind in _arguments(loader.modules_collection[annotation.slice.canonical_path]):
                        keyword = griffe.ParameterKind.keyword_only
                        if name not in function.parameters:
                            argument = griffe.Parameter(name, annotation=kind, kind=keyword, default="...")
                            function.parameters.add(argument)
                    rest.annotation = "Any"
                    function.parameters.add(rest)


def _functions(owner: griffe.Module | griffe.Class) -> Iterator[griffe.Function]:
    for member in owner.members.values():
        if isinstance(member, griffe.Function):
            yield member
        elif isinstance(member, griffe.Module | griffe.Class):
            yield from _functions(member)


def _arguments(typed: griffe.Object | griffe.Alias) -> Iterator[tuple[str, str | griffe.Expr | None]]:
    """The keys of a TypedDict and their types, those of its bases first."""
    found = typed.final_target if isinstance(typed, griffe.Alias) else typed
    if isinstance(found, griffe.Class):
        for base in found.resolved_bases:
            yield from _arguments(base)
        for attribute in found.attributes.values():
            yield attribute.name, attribute.annotation
