"""Two commits of a small repository are compared by runs of their own programs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.compare import CompareOptions, run
from benchmarks.parts.compare import trees

pytestmark = pytest.mark.process

PROGRAM = """
import json, sys
def app():
    figures = {{"flags": len(sys.argv), "jobs_per_s": {speed}, "same": 3}}
    print(json.dumps({{"bench": sys.argv[2], **figures}}))
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose `berth` prints 100 in its commit and 125 in its files."""
    root = tmp_path / "repository"
    root.mkdir()
    (root / "pyproject.toml").write_text('[project.scripts]\nberth = "old:app"\n')
    (root / "old.py").write_text(PROGRAM.format(speed=100))
    author = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for words in (["init"], ["add", "."], [*author, "commit", "-m", "x"]):
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)
    (root / "old.py").unlink()
    (root / "new.py").write_text(PROGRAM.format(speed=125))
    (root / "pyproject.toml").write_text('[project.scripts]\nberth = "new:app"\n')
    monkeypatch.setattr(trees, "ROOT", root)
    return root


async def test_each_figure_has_its_ratio_to_that_of_the_commit(repository: Path) -> None:
    lines: list[str] = []
    options = CompareOptions(base="HEAD", benches="small", options="--quick", rounds=2)
    result = cast("Any", await run(options, lines.append))
    rows = {row["figure"]: row for row in result["ratios"]["small"]}
    assert rows["jobs_per_s"]["ratio"] == rows["jobs_per_s"]["least"] == 1.25
    assert set(rows) <= {"jobs_per_s", "process.cpu_s"}
    assert any("1.250" in line for line in lines)


async def test_a_base_that_is_no_commit_is_named(repository: Path) -> None:
    with pytest.raises(ValueError, match="base: 'nothing', must be a commit"):
        await run(CompareOptions(base="nothing"), lambda line: None)


async def test_a_tree_that_imports_another_fails(repository: Path) -> None:
    (repository / "pyproject.toml").write_text('[project.scripts]\nberth = "json:loads"\n')
    with pytest.raises(ValueError, match="must lie in"):
        await trees.run_bench(repository, "small", [])
