"""Every Python example in the README, its siblings and docs/ runs, page by page, in an empty folder."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark_programs import SparkPrograms, spark_programs

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> str:
    text = page.read_text()
    # Blank lines in place of prose: a traceback then names the page's own line.
    lines = [""] * text.count("\n")
    for match in BLOCK.finditer(text):
        first = text.count("\n", 0, match.start(1))
        for offset, line in enumerate(match.group(1).splitlines()):
            lines[first + offset] = line
    return "\n".join(lines)


WITH_EXAMPLES = [page for page in PAGES if BLOCK.search(page.read_text())]
OF_SPARK = [page for page in WITH_EXAMPLES if "SparkSession" in examples(page)]
PLAIN = [page for page in WITH_EXAMPLES if page not in OF_SPARK]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkPrograms]:
    with spark_programs(tmp_path_factory.mktemp("programs")) as found:
        yield found


@pytest.mark.parametrize("page", OF_SPARK, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_with_spark(page: Path, programs: SparkPrograms, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(examples(page))
    done = programs.run(script)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    script = tmp_path / page.with_suffix(".py").name.replace("-", "_")
    script.write_text(examples(page))
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
