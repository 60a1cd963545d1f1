"""Every test belongs to `make test`, `make test-parts` or `make test-long`; CI runs two of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import chain, combinations
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests.selection import APART, GROUPS, LONGEST, SPAWNING, group_of

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()
MARKS = ("parts", "long", "slow", "process", "kafka", "stack", "browser", "compose")

CONFTEST = """
import pytest
from tests.selection import (
    pytest_collection_modifyitems, pytest_runtest_teardown, pytest_xdist_make_scheduler
)

def write(line):
    with open("notes", "a") as notes:
        notes.write(line + "\\n")

@pytest.fixture(scope="session")
def shared_stand():
    write("the stack begins")
    yield
    write("the stack ends")

@pytest.fixture
def note(request):
    write(request.node.path.stem)
"""


def selection(target: str) -> Expression:
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe
    chosen = re.search(r'(?:pytest|TESTS\)) -m ("[^"]+"|\w+)', recipe[1])
    assert chosen
    alone = re.search(r"^ALONE := (.*)$", MAKEFILE, re.MULTILINE)
    assert alone
    return Expression.compile(chosen[1].strip('"').replace("$(ALONE)", alone[1]))


def sets_of_marks() -> list[frozenset[str]]:
    sizes = range(len(MARKS) + 1)
    return [frozenset(s) for s in chain.from_iterable(combinations(MARKS, n) for n in sizes)]


def is_chosen(selected: Expression, marks: frozenset[str]) -> bool:
    return selected.evaluate(lambda name, /, **_: name in marks)


def test_each_test_is_in_one_of_the_three_runs() -> None:
    runs = [selection(target) for target in ("tests", "test-parts", "test-long")]
    for marks in sets_of_marks():
        assert sum(is_chosen(run, marks) for run in runs) == 1, marks


def test_the_fast_run_is_a_part_of_the_full_one_without_any_mark() -> None:
    fast = selection("test-fast")
    chosen = [marks for marks in sets_of_marks() if is_chosen(fast, marks)]
    assert chosen == [frozenset()]


def test_the_fast_run_has_the_folders_of_all_pure_cores() -> None:
    inner = re.search(r"^INNER := ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert inner and "$(wildcard tests/services/*/core) tests/agent/core" in inner[1]
    cores = list(ROOT.glob("services/*/core"))
    assert cores
    assert [core for core in cores if not (ROOT / "tests" / core.relative_to(ROOT)).is_dir()] == []


def test_ci_runs_both_in_full() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "make test RETRY=1" in lines
    assert lines[-1] == "exec make test-parts RETRY=1"


def test_each_group_has_files() -> None:
    assert [start for start in GROUPS if not any(ROOT.glob(f"{start}*"))] == []
    assert group_of("tests/e2e/bad_input/test_rest.py::test_x[a::b]") == "shared stack"
    assert group_of("tests/infra/security/on_kafka/test_rights.py::test_x") == "guarded broker"
    assert group_of("tests/infra/security/test_acls.py::test_x").endswith("test_acls.py")
    assert group_of("tests/test_selection.py::test_x") == "tests/test_selection.py"


@pytest.mark.parametrize("path", [*LONGEST, *APART])
def test_a_long_file_exists_and_shares_a_fixture_only_in_its_group(path: str) -> None:
    is_shared = 'scope="' in (ROOT / path).read_text()
    assert not (is_shared and path in APART)
    assert (group_of(f"{path}::test_x") == path) == (path not in APART)


def test_a_test_without_the_mark_may_start_no_process() -> None:
    assert "subprocess.Popen" in SPAWNING
    with pytest.raises(RuntimeError, match="mark it with pytest.mark.process"):
        subprocess.run([sys.executable, "-c", ""], check=False)


@pytest.mark.process
def test_a_stack_ends_with_the_last_test_of_its_group(tmp_path: Path) -> None:
    """The tests of other groups run without it, and the longest ones before it."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    first = "tests/operations/test_upgrade"
    for name in ("tests/e2e/bad_input/test_a", "tests/test_z", "tests/operations/test_tilt", first):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        fixtures = "note" if name in ("tests/test_z", first) else "shared_stand, note"
        path.write_text(f"def test_it({fixtures}): pass\n")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --import-mode=importlib -p no:asyncio -n 1\nmarkers = process"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    notes = (tmp_path / "notes").read_text().splitlines()
    shared = ["the stack begins", "test_a", "test_tilt", "the stack ends"]
    assert notes == ["test_upgrade", *shared, "test_z"]
