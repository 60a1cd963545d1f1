"""The page of backends has every case of the suite, for each backend."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.services.executor.conformance.matrix import (
    BACKENDS,
    FAILS,
    PAGE,
    ROOT,
    SUITE,
    outcomes_of,
    page_of,
)


def functions(path: Path) -> list[str]:
    """Return the names of the tests of a file, in their order."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse(path.read_text()).body
    return [n.name for n in body if isinstance(n, kinds) and n.name.startswith("test_")]


def test_the_page_has_every_case_and_none_that_fails() -> None:
    names = [case.removeprefix("test_").replace("_", " ") for case in functions(ROOT / SUITE)]
    head, _, table = PAGE.read_text().partition(f"|---|{'---|' * len(BACKENDS)}\n")
    rows = table.splitlines()
    assert head.endswith(f"| case | {' | '.join(BACKENDS)} |\n")
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == names
    assert FAILS not in PAGE.read_text()


def test_a_row_has_the_outcome_of_each_backend() -> None:
    case = dict(zip(BACKENDS, ("yes", "why not", "no"), strict=False))
    rest = dict.fromkeys(BACKENDS[3:], "yes")
    page = page_of({"test_it_works": {**case, **rest}})
    assert page.endswith(f"| it works | yes | why not | no |{' yes |' * len(rest)}\n")


def test_outcomes_of_a_backend_are_pass_fail_or_the_reason() -> None:
    cells = {"test_a_b": {"slurm": "yes"}, "test_c": {"slurm": FAILS}, "test_d": {"slurm": "why"}}
    assert outcomes_of(cells, "slurm") == {"a b": "pass", "c": "fail", "d": "not applicable: why"}
    assert outcomes_of(cells, "virtual") == {}
