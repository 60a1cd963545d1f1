"""Without a rule of the node's or the reader's side, a test of that rule fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.fencing.node_sabotage import SABOTAGES

ROOT = Path(__file__).parents[2]
FOLDERS = ("agent", "docs", "infra", "reporter", "services", "shared", "simulator", "tests")
WAIT_S = "30"
"""Limit of waits where a rule is removed, in seconds: what it would have ended lives on."""
EXAMPLES = "1000"
"""Examples of a property: of the usual 100, one run in twenty has none that the rule forbids."""
FAILED = 1
"""Exit code of pytest where a test failed: neither an error of usage nor nothing to run."""

pytestmark = [pytest.mark.parts, pytest.mark.process]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources, with what is compiled of them."""
    copy = tmp_path_factory.mktemp("sources")
    for folder in FOLDERS:
        leave_out = shutil.ignore_patterns("traces")
        shutil.copytree(ROOT / folder, copy / folder, ignore=leave_out)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def run(sources: Path, *tests: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = [str(sources), str(sources / "agent"), str(sources / "reporter")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), **variables}
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=sources, env=env, check=False, capture_output=True, text=True
    )


def test_with_all_rules_no_test_fails(sources: Path) -> None:
    done = run(sources, *sorted({sabotage.tests for sabotage in SABOTAGES.values()}))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", SABOTAGES)
def test_without_a_rule_its_test_fails(sources: Path, name: str) -> None:
    path, rule, replacement, tests = SABOTAGES[name]
    whole = (sources / path).read_text()
    assert whole.count(rule) == 1, f"{path} has changed: {rule!r}"
    write(sources / path, whole.replace(rule, replacement))
    try:
        done = run(sources, tests, BERTH_PATIENCE_S=WAIT_S, EXAMPLES=EXAMPLES)
    finally:
        write(sources / path, whole)
    assert done.returncode == FAILED, done.stdout


def write(module: Path, text: str) -> None:
    """Write a module, and remove what is compiled of it: a change within a second, to as many
    bytes, would not be noticed."""
    module.write_text(text)
    Path(cache_from_source(str(module))).unlink(missing_ok=True)
