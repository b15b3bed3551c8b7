"""`Names`: which of many columns an SQL text may mean."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+")


class Names:
    """The names of columns, of which few are looked at for a text: more than those that it means may be among them, but
    each that it means, in any case, unless it is spelled with doubled quotes.

    Example:
        >>> from esker.lance.scan.names import Names
        >>> Names(["c1", "c12", "a b", "C1"]).named_in("c1 + length(`a b`)")
        ['c1', 'a b', 'C1']
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        self._words: dict[str, list[int]] = {}
        self._others: list[tuple[str, int]] = []
        for place, name in enumerate(self._names):
            plain = name.casefold()
            if _WORD.fullmatch(plain):
                self._words.setdefault(plain, []).append(place)
            else:
                self._others.append((plain, place))

    def named_in(self, text: str) -> list[str]:
        """The names that occur in a text, in their order."""
        plain = text.casefold()
        places = [place for word in set(_WORD.findall(plain)) for place in self._words.get(word, ())]
        places += [place for name, place in self._others if name in plain]
        return [self._names[place] for place in sorted(places)]
