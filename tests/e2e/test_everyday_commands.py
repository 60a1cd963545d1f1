"""The commands of the pages for users of Slurm and kubectl do what stands beside them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.docs.test_commands import parse
from tests.e2e.stand import LOCAL_POOL, Stand, a_stand, eventually
from tests.pages import blocks

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| `.+?` .*?\| `berth (.+?)` \|", re.MULTILINE)
JOB_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
FILES = {"from-slurm": ("job.yaml",), "from-kubectl": ("cluster.yaml", "gone.yaml", "job.yaml")}
EXIT_CODES = {"apply -f cluster.yaml --dry-run": 1}
"""Of the commands that do not exit with 0."""


def commands_of(page: str) -> list[str]:
    return ROW.findall((DOCS / f"{page}.md").read_text())


@pytest.mark.parametrize("page", FILES)
def test_the_commands_can_be_parsed(page: str) -> None:
    commands = commands_of(page)
    assert len(commands) > 20
    for command in commands:
        if command != "--version":
            parse(shlex.split(command))


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand("failslow", "throttle") as stand:
        yield stand


@pytest.mark.parts
@pytest.mark.stack
@pytest.mark.parametrize("page", FILES)
def test_the_commands_succeed_in_their_order(
    page: str, stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERTH_HOME", str(stand.stack.data_dir))
    manifests = blocks((DOCS / f"{page}.md").read_text(), "yaml")
    for name, content in zip(FILES[page], manifests, strict=True):
        (tmp_path / name).write_text(content)
    ids = {"NODE": node_of(stand)}
    for command in commands_of(page):
        words = [ids.get(word, word) for word in shlex.split(command)]
        done = CliRunner().invoke(app, words)
        output = done.stdout + done.stderr
        assert done.exit_code == EXIT_CODES.get(command, 0), (command, output, done.exception)
        if words[0] in ("submit", "retry") and (match := JOB_ID.search(output)):
            ids["ARRAY" if "--array" in words else "JOB"] = match[0]
    assert ids.keys() == {"NODE", "JOB", *(("ARRAY",) if page == "from-slurm" else ())}


def node_of(stand: Stand) -> str:
    """Return the node of the local pool once it has joined."""
    return eventually(lambda: next(iter(_nodes(stand)), ""))


def _nodes(stand: Stand) -> list[str]:
    page = stand.get("/v1/nodes")
    rows = page["items"] if page else []
    return [row["node_id"] for row in rows if row["pool"] == LOCAL_POOL]
