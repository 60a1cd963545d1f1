"""Every test belongs to `make test` or to `make test-parts`, and CI runs both."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import chain, combinations
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests.selection import GROUPS, SPAWNING, group_of

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()
MARKS = ("parts", "slow", "process", "kafka", "stack", "browser", "compose")


def selection(target: str) -> Expression:
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe
    chosen = re.search(r'pytest -m ("[^"]+"|\w+)', recipe[1])
    assert chosen
    alone = re.search(r"^ALONE := (.*)$", MAKEFILE, re.MULTILINE)
    assert alone
    return Expression.compile(chosen[1].strip('"').replace("$(ALONE)", alone[1]))


def sets_of_marks() -> list[frozenset[str]]:
    sizes = range(len(MARKS) + 1)
    return [frozenset(s) for s in chain.from_iterable(combinations(MARKS, n) for n in sizes)]


def is_chosen(selected: Expression, marks: frozenset[str]) -> bool:
    return selected.evaluate(lambda name, /, **_: name in marks)


def test_each_test_is_in_one_of_the_two_runs() -> None:
    test, parts = selection("test"), selection("test-parts")
    for marks in sets_of_marks():
        assert is_chosen(test, marks) != is_chosen(parts, marks), marks


def test_the_fast_run_is_a_part_of_the_full_one_without_any_mark() -> None:
    fast = selection("test-fast")
    chosen = [marks for marks in sets_of_marks() if is_chosen(fast, marks)]
    assert chosen == [frozenset()]


def test_ci_runs_both_in_full() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "make test" in lines
    assert lines[-1] == "exec make test-parts"


def test_each_group_has_files() -> None:
    assert [start for start in GROUPS if not any(ROOT.glob(f"{start}*"))] == []
    assert group_of("tests/e2e/bad_input/test_rest.py::test_x[a::b]") == "shared stack"
    assert group_of("tests/infra/security/on_kafka/test_rights.py::test_x") == "guarded broker"
    assert group_of("tests/infra/security/test_acls.py::test_x").endswith("test_acls.py")
    assert group_of("tests/test_selection.py::test_x") == "tests/test_selection.py"


def test_a_test_without_the_mark_may_start_no_process() -> None:
    assert "subprocess.Popen" in SPAWNING
    with pytest.raises(RuntimeError, match="mark it with pytest.mark.process"):
        subprocess.run([sys.executable, "-c", ""], check=False)
