"""The runbook of quarantined inputs is executed as it stands, with a real defect."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.supervisor import supervise
from infra.supervisor.running import load
from tests.e2e.stand import eventually
from tests.operations.test_runbooks import PAGES, runbook_environment
from tests.pages import blocks, shell
from tests.patience import PATIENCE_S

BUILD, SEND, INSPECT, REMEDY = blocks((PAGES / "quarantine.md").read_text())
VARIABLES = "declare -p first second > variables 2> /dev/null || true"
"""Keeps the shell variables of a block for the next one."""
WITHIN_S = 300

pytestmark = [pytest.mark.parts, pytest.mark.stack]


class Operator:
    """A shell in a folder of its own, beside the data folder of a stack."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"

    def run(self, block: str) -> str:
        """Run the commands of a block; return all that they print."""
        kept = self.folder / "variables"
        before = f". {kept}\n" if kept.exists() else ""
        done = subprocess.run(
            shell(f"{before}{block}\n{VARIABLES}"),
            env=runbook_environment(self.data),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    def phases(self) -> dict[str, list[str]]:
        """Return the phases of all jobs by their names."""
        phases: dict[str, list[str]] = {}
        for job in json.loads(self.run("berth jobs --json")):
            phases.setdefault(job["name"], []).append(job["phase"])
        return phases

    def quarantined(self) -> dict[str, float]:
        """Return the figures of the metric on which the alert is built, by topic."""
        port = load(self.data).ports["admission"]["metrics"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as page:
            text = page.read().decode()
        samples = re.findall(r'^berth_inputs_quarantined_total\{topic="(.*)"\} (.*)$', text, re.M)
        return {topic: float(value) for topic, value in samples}


@pytest.fixture
def operator() -> Iterator[Operator]:
    with tempfile.TemporaryDirectory(
        prefix="berth-quarantine-", ignore_cleanup_errors=True
    ) as name:
        operator = Operator(Path(name))
        operator.folder.chmod(0o755)
        try:
            yield operator
        finally:
            if operator.data.exists():
                supervise.down(operator.data)


def test_a_quarantined_input_is_answered_shown_decided_again_or_skipped(operator: Operator) -> None:
    operator.run(BUILD)
    sent = operator.run(SEND)
    answers = re.findall(r"quarantined: .* an operator has it as (\S+)\n", sent)
    assert len(set(answers)) == 2 and sent.count("refused, exit code 5") == 2
    assert sent.rstrip().endswith("succeeded")
    assert operator.quarantined() == {"commands": 2.0}

    shown = operator.run(INSPECT)
    assert all(answer in shown for answer in answers)
    assert "ZeroDivisionError: a defect on purpose" in shown and '"name":"odd"' in shown
    assert "2 open" in operator.run("berth verify")

    settled = operator.run(REMEDY)
    first, second = answers
    assert f"{first}: retried" in settled and f"{second}: skipped" in settled
    assert "0 violations" in settled and " 0 open" in settled
    eventually(lambda: operator.phases() == {"behind": ["succeeded"], "odd": ["succeeded"]})
    assert operator.quarantined() == {}
    assert "already_settled" in operator.run(f"berth dead skip {first} --reason late 2>&1 || true")
