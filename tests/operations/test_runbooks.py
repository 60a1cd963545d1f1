"""Each runbook is executed as it stands: its `sh` blocks, in order, with the faults they cause."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.broker import kafka
from infra.supervisor import supervise
from tests.pages import blocks, environment, run_shell

PAGES = Path(__file__).parents[2] / "docs" / "operations"
ORDER = (
    "deploy",
    "observability",
    "poison-record",
    "stuck-consumer",
    "lost-node",
    "secrets",
    "llm",
    "lost-postgres",
    "backup",
    "lost-broker-disk",
)
"""The first starts the stack that the others work on."""
ELSEWHERE = {
    "README": "has no block",
    "archive": "tests/operations/test_archive.py",
    "capacity": "is made by benchmarks",
    "chaos": "tests/chaos",
    "compose": "tests/compose",
    "drills": "tests/e2e/test_drill.py",
    "nodes": "tests/operations/test_nodes.py and tests/services/gateway/routes/test_joining.py",
    "output": "has no block; tests/shared/job_logs and tests/services/projector/test_output.py",
    "quarantine": "tests/operations/test_quarantine.py",
    "security": "tests/infra, tests/services/gateway and tests/e2e/test_secrets.py",
    "several-machines": "tests/operations/test_several_machines.py",
    "training": "tests/e2e/test_training.py",
    "tilt": "tests/operations/test_tilt.py",
    "upgrade": "tests/operations/test_upgrade.py",
    "validation": "tests/e2e/test_validation.py",
}
"""Pages whose blocks run in other tests."""

pytestmark = [
    pytest.mark.parts,
    pytest.mark.stack,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="berth-runbook-", ignore_cleanup_errors=True) as root:
        folder = Path(root) / "data"
        try:
            yield folder
        finally:
            if folder.exists():
                supervise.down(folder)


def test_every_page_is_run_somewhere() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} <= {*ORDER, *ELSEWHERE}


@pytest.mark.parametrize("page", ORDER)
def test_the_page_does_what_it_says(page: str, home: Path) -> None:
    commands = blocks((PAGES / f"{page}.md").read_text())
    assert commands
    run_shell("\n".join(commands), runbook_environment(home), home.parent)


def runbook_environment(home: Path) -> dict[str, str]:
    """Return the environment of an operator's shell, with a folder for backups."""
    return environment(home) | {"BACKUP": str(home.parent / "backup")}
