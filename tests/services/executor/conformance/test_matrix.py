"""The page of backends has every case of the suite, and the tests of agents for the same."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.services.executor.conformance.matrix import (
    AGENT,
    FAILS,
    NO_ENGINE,
    PAGE,
    ROOT,
    SUITE,
    cases,
    outcomes_of,
    page_of,
    with_agents,
)


def functions(path: Path) -> list[str]:
    """Return the names of the tests of a file, in their order."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse(path.read_text()).body
    return [n.name for n in body if isinstance(n, kinds) and n.name.startswith("test_")]


def test_the_page_has_every_case_and_none_that_fails() -> None:
    names = [case.removeprefix("test_").replace("_", " ") for case in functions(ROOT / SUITE)]
    rows = PAGE.read_text().partition("|---|---|---|---|---|---|\n")[2].splitlines()
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == names
    assert FAILS not in PAGE.read_text()


def test_the_tests_of_agents_exist() -> None:
    assert AGENT.keys() <= set(functions(ROOT / SUITE))
    for path, test in AGENT.values():
        assert test in functions(ROOT / path), (path, test)


def test_a_row_has_the_outcome_of_each_backend() -> None:
    case = {
        "agent": "no engine",
        "virtual": "why not",
        "slurm": "yes",
        "kubernetes": "no",
        "ray": "yes",
    }
    page = page_of({"test_it_works": case})
    assert page.endswith("| it works | no engine | why not | yes | no | yes |\n")


def test_the_page_links_the_test_of_agents_of_a_case() -> None:
    case, (path, test) = next(iter(AGENT.items()))
    page = page_of({case: dict.fromkeys(("agent", "virtual", "slurm", "kubernetes", "ray"), "yes")})
    assert page.endswith(f"| [yes](../{path} '{test}') | yes | yes | yes | yes |\n")


def test_agents_have_the_outcome_of_their_own_test() -> None:
    case, (_, test) = next(iter(AGENT.items()))
    cells = {case: {"slurm": "yes"}, "test_only_engines_have_it": {}}

    def agent(**outcomes: str) -> str:
        return with_agents(cells, {test: outcomes})[case]["agent"]

    assert agent(first="yes", second="yes") == "yes"
    assert agent(first="yes", second=FAILS) == FAILS
    assert agent() == FAILS, "a test that did not run is none that passed"
    assert with_agents(cells, {})["test_only_engines_have_it"] == {"agent": NO_ENGINE}


def test_outcomes_of_a_backend_are_pass_fail_or_the_reason() -> None:
    cells = {"test_a_b": {"slurm": "yes"}, "test_c": {"slurm": FAILS}, "test_d": {"slurm": "why"}}
    assert outcomes_of(cells, "slurm") == {"a b": "pass", "c": "fail", "d": "not applicable: why"}
    assert outcomes_of(cells, "virtual") == {}


def test_the_cases_are_those_of_the_suite() -> None:
    assert cases() == functions(ROOT / SUITE)
