"""The clauses of a merge as a caller gives them: an action, a condition, SQL for columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ...exceptions import InvalidArgumentError

Action: TypeAlias = Literal["update", "delete", "insert"]
Side: TypeAlias = Literal["matched", "not_matched", "not_matched_by_source"]


@dataclass(frozen=True)
class Clause:
    """One clause.

    Args:
        action: What it does.
        predicate: For which of its rows, as SQL; all if not given.
        assignments: SQL by column.
        takes_all: Whether it assigns every column of the source under its own name.
        except_columns: Those that it does not assign then.
    """

    action: Action
    predicate: str | None = None
    assignments: Mapping[str, str] = field(default_factory=dict)
    takes_all: bool = False
    except_columns: tuple[str, ...] = ()

    @property
    def is_unconditional_delete(self) -> bool:
        """Whether it deletes whatever it is asked for."""
        return self.action == "delete" and self.predicate is None


@dataclass(frozen=True)
class Clauses:
    """All clauses; of each kind the first whose predicate is true is what happens to a row.

    Example:
        >>> from esker.delta.merge.clauses import Clause, Clauses
        >>> Clauses().added("matched", Clause("delete")).matched[0].is_unconditional_delete
        True
    """

    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    not_matched_by_source: tuple[Clause, ...] = ()

    def added(self, side: Side, clause: Clause) -> Clauses:
        """These and one more, behind those of its kind."""
        parts = {name: getattr(self, name) for name in ("matched", "not_matched", "not_matched_by_source")}
        parts[side] = (*parts[side], clause)
        return Clauses(**parts)

    def described(self) -> dict[str, list[dict[str, str]]]:
        """The clauses as `operationParameters` of the log tell them, by their keys."""
        keys = {
            "matchedPredicates": self.matched,
            "notMatchedPredicates": self.not_matched,
            "notMatchedBySourcePredicates": self.not_matched_by_source,
        }
        return {key: [_described(clause) for clause in clauses] for key, clauses in keys.items()}


def _described(clause: Clause) -> dict[str, str]:
    found = {"actionType": str(clause.action)}
    return found if clause.predicate is None else {**found, "predicate": clause.predicate}


def check_texts(what: str, assignments: Mapping[str, str]) -> None:
    """Raises unless columns and their values are texts of SQL.

    Raises:
        TypeError: One is not.
        InvalidArgumentError: There is none.

    Example:
        >>> from esker.delta.merge.clauses import check_texts
        >>> check_texts("when_matched_update", {"n": "source.n"})
    """
    if any(not isinstance(part, str) for pair in assignments.items() for part in pair):
        raise TypeError(f"{what}: expected updates as SQL by column, both texts, found {dict(assignments)}")
    if not assignments:
        raise InvalidArgumentError(f"{what}: expected at least one column in updates, found none")
