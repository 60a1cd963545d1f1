"""The page of the archive is executed as it stands, on a Kafka with users."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.broker import kafka
from infra.supervisor import supervise
from tests.operations.test_runbooks import BLOCK, PAGE_S, PAGES, runbook_environment

pytestmark = [
    pytest.mark.parts,
    pytest.mark.stack,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="berth-archive-", ignore_cleanup_errors=True) as root:
        Path(root).chmod(0o755)
        folder = Path(root) / "data"
        try:
            yield folder
        finally:
            for data in Path(root).glob("data*"):
                supervise.down(data)


def test_the_page_does_what_it_says(home: Path) -> None:
    blocks = BLOCK.findall((PAGES / "archive.md").read_text())
    variables = {"ARCHIVE": str(home.parent / "archive"), "BACKUP": str(home.parent / "backup")}
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-x", "-c", "\n".join(blocks)],
        env=runbook_environment(home) | variables,
        cwd=home.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PAGE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
