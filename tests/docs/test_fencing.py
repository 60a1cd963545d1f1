"""The page of fencing names tests that exist, for every rule and every group of faults."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.fencing.node_sabotage import SABOTAGES as OF_NODES
from tests.fencing.sabotage import READER_RULES
from tests.fencing.sabotage import SABOTAGES as OF_PLACEMENT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "fencing.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
COUNT = 18


def rows(section: str) -> dict[int, str]:
    """Return the rows of a section's table by their number."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return {int(row[1]): row[0] for row in re.finditer(r"^\| (\d+)\. .*$", text, re.MULTILINE)}


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize("path", sorted({path for path, _ in NAMED.findall(PAGE)}))
def test_every_test_that_the_page_names_exists(path: str) -> None:
    named = {name for known, name in NAMED.findall(PAGE) if known == path}
    assert named <= functions(path), named - functions(path)


@pytest.mark.parametrize("section", ["Rules", "Faults on real processes"])
def test_every_rule_and_group_has_a_test(section: str) -> None:
    numbered = rows(section)
    assert list(numbered) == list(range(1, COUNT + 1))
    assert [number for number, row in numbered.items() if not NAMED.search(row)] == []


def test_every_removal_belongs_to_a_rule_of_the_page() -> None:
    named = set(re.findall(r"\bR\d+[a-z]?\b", "".join(rows("Rules").values())))
    removed = {name.split()[0] for name in (*OF_NODES, *OF_PLACEMENT, *READER_RULES)}
    assert {name for name in removed if name.startswith("R")} <= named
