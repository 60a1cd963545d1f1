"""The page on webhooks and mails is executed as it stands: its receiver, its commands, in order."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from infra.supervisor import supervise
from tests.operations.test_runbooks import runbook_environment
from tests.pages import ROOT, blocks, run_shell

PAGE = (ROOT / "docs" / "notifications.md").read_text()

pytestmark = [pytest.mark.parts, pytest.mark.stack]


def test_the_page_does_what_it_says() -> None:
    (receiver,) = blocks(PAGE, "python")
    commands = blocks(PAGE)
    assert len(commands) == 2
    with tempfile.TemporaryDirectory(prefix="berth-hooks-", ignore_cleanup_errors=True) as root:
        home = Path(root) / "data"
        (Path(root) / "receiver.py").write_text(receiver)
        try:
            output = run_shell("\n".join(commands), runbook_environment(home), Path(root))
        finally:
            supervise.down(home)
        received = (Path(root) / "received.txt").read_text().splitlines()
    assert received[0].split()[0] == "webhook.tested.v1"
    kinds = [line.split()[0] for line in received[1:]]
    assert sorted(kinds) == ["job.started.v1", "job.succeeded.v1"]
    assert all("https://berth.example.org/v1/jobs/" in line for line in received[1:])
    assert "ci: delivered" in output
