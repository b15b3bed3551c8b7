"""What the house is kept with: the tools of a commit hook are those of `make`, forms and schedules are well formed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
FORMS = sorted([*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"])


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_a_form_is_well_formed(form: Path) -> None:
    assert isinstance(yaml.safe_load(form.read_text()), dict)


def test_hooks_have_the_version_of_ruff_that_make_has() -> None:
    development = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]
    (wanted,) = (found for found in development if found.startswith("ruff"))
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    given = {found for hook in hooks for found in hook.get("additional_dependencies", []) if found.startswith("ruff")}
    assert given == {wanted}
    assert {hook["id"] for hook in hooks} == {"ruff", "ruff-format", "rustfmt", "typos"}


@pytest.mark.parametrize("form", ["bug_report.yml", "feature_request.yml"])
def test_a_form_asks_by_ids_that_differ(form: str) -> None:
    body = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / form).read_text())["body"]
    ids = [question["id"] for question in body if question["type"] != "markdown"]
    assert len(set(ids)) == len(ids) > 1


def test_decisions_are_numbered_and_say_what_they_cost() -> None:
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    for page in pages:
        headings = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
        assert headings == ["Context", "Decision", "What it costs", "What would change it"], page.name
