"""The page on webhooks and mails is executed as it stands: its receiver, its commands, in order."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from infra.supervisor import supervise
from tests.operations.test_runbooks import BLOCK, PAGE_S, runbook_environment

PAGE = (Path(__file__).parents[2] / "docs" / "notifications.md").read_text()

pytestmark = [pytest.mark.parts, pytest.mark.stack]


def test_the_page_does_what_it_says() -> None:
    (receiver,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == 2
    with tempfile.TemporaryDirectory(prefix="berth-hooks-", ignore_cleanup_errors=True) as root:
        home = Path(root) / "data"
        (Path(root) / "receiver.py").write_text(receiver)
        try:
            done = subprocess.run(
                ["bash", "-eu", "-o", "pipefail", "-x", "-c", "\n".join(blocks)],
                env=runbook_environment(home),
                cwd=root,
                capture_output=True,
                text=True,
                timeout=PAGE_S,
                check=False,
            )
        finally:
            supervise.down(home)
        received = (Path(root) / "received.txt").read_text().splitlines()
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert received[0].split()[0] == "webhook.tested.v1"
    kinds = [line.split()[0] for line in received[1:]]
    assert sorted(kinds) == ["job.started.v1", "job.succeeded.v1"]
    assert all("https://berth.example.org/v1/jobs/" in line for line in received[1:])
    assert "ci: delivered" in done.stdout
