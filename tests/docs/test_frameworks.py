"""The page on frameworks has those that exist; tests of `tests/e2e` run its commands."""

from __future__ import annotations

import re
from pathlib import Path

from berth_client.frameworks import FRAMEWORKS
from tests.pages import blocks

PAGE = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text()


def test_the_table_has_every_framework() -> None:
    table = PAGE.partition("| `--framework` |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)) == FRAMEWORKS


def test_the_example_in_python_is_a_job() -> None:
    [block] = blocks(PAGE, "python")
    compile(block, "docs/frameworks.md", "exec")
