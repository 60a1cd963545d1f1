"""The examples of docs/client.md on a real stack, and the output of a job as it comes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.e2e.stand import LOCAL_POOL, Stand
from tests.pages import blocks

pytestmark = pytest.mark.stack
PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
EXAMPLES = blocks(PAGE, "python")
PRINTED = (
    r"succeeded \['a100-\d'\]",
    r"\S+ \d+ \['job.admitted.v1'.*\n(.*\n)*.*'virtual'.* key:\S+",
    r"(\S+ train\S*\n?)+",
    r"422 spec.gang.workers .+",
    r"\{'succeeded'\}",
)


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_each_example_of_the_page_works(
    shared_stand: Stand,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
) -> None:
    assert len(EXAMPLES) == len(PRINTED)
    monkeypatch.setenv("BERTH_URL", shared_stand.stack.gateway)
    monkeypatch.setenv("BERTH_KEY", shared_stand.keys["ada"])
    monkeypatch.setenv("BERTH_CA", str(shared_stand.stack.ca))
    exec(compile(EXAMPLES[number], f"docs/client.md example {number}", "exec"), {})  # noqa: S102
    printed = capsys.readouterr().out.strip()
    assert re.fullmatch(PRINTED[number], printed), printed


def test_a_job_starts_with_the_files_of_a_folder(
    shared_stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "mod.py").write_text("X = 'from the laptop'\n")
    (tmp_path / "train.py").write_text("from pkg.mod import X\nprint(X)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERTH_HOME", str(shared_stand.stack.data_dir))
    words = ["submit", "--tenant", "ada", "--pool", LOCAL_POOL, "--upload", ".", "--follow"]
    done = CliRunner().invoke(app, [*words, "--", "python3", "train.py"])
    assert done.exit_code == 0, done.output
    assert "from the laptop" in done.stdout and "uploaded 2 files" in done.stderr
