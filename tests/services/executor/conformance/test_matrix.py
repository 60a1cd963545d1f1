"""The page of backends has every case of the suite, and the tests of agents for the same."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.services.executor.conformance.matrix import AGENT, FAILS, PAGE, ROOT, SUITE, page_of


def functions(path: Path) -> list[str]:
    """Return the names of the tests of a file, in their order."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse(path.read_text()).body
    return [n.name for n in body if isinstance(n, kinds) and n.name.startswith("test_")]


def test_the_page_has_every_case_and_none_that_fails() -> None:
    cases = [case.removeprefix("test_").replace("_", " ") for case in functions(ROOT / SUITE)]
    rows = PAGE.read_text().partition("|---|---|---|---|---|\n")[2].splitlines()
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == cases
    assert FAILS not in PAGE.read_text()


def test_the_tests_of_agents_exist() -> None:
    assert AGENT.keys() <= set(functions(ROOT / SUITE))
    for path, test in AGENT.values():
        assert test in functions(ROOT / path), (path, test)


def test_a_row_has_the_outcome_of_each_backend() -> None:
    page = page_of({"test_it_works": {"virtual": "why not", "slurm": "yes", "kubernetes": "no"}})
    assert page.endswith("| it works | no engine runs beside the agent | why not | yes | no |\n")
