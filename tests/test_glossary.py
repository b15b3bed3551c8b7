"""The glossary: in order, defined in a few sentences, and its names of ours are there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "glossary.md").read_text()
TERMS = dict(re.findall(r"^## (.+)\n\n((?:(?!## ).*\n?)+)", PAGE, re.MULTILINE))
NAME = re.compile(r"`(esker(?:\.\w+)+)`")


def _found(path: str) -> object:
    names = path.split(".")
    for end in range(len(names) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(names[:end]))
        except ImportError:
            continue
        for name in names[end:]:
            found = getattr(found, name)
        return found
    raise ImportError(path)


def test_terms_are_in_order_and_many() -> None:
    assert list(TERMS) == sorted(TERMS, key=str.lower)
    assert len(TERMS) >= 40


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_defined_and_told_in_the_words_of_the_peers(term: str) -> None:
    definition, elsewhere, here = re.fullmatch(
        r"(.+)\n\n- \*Elsewhere:\* (.+)\n- \*Here:\* (.+)\n*", TERMS[term]
    ).groups()  # type: ignore[union-attr]
    assert 1 <= len(re.findall(r"[.?!](?= |$)", definition)) <= 3
    assert elsewhere
    for path in NAME.findall(here):
        assert _found(path) is not None
