"""The page of nodes and the systemd unit: the page is run as it stands, the unit is verified."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest

from berth_agent.telemetry_receiver import TelemetryReceiver
from cli.text.failures import REASONS
from infra import packages
from shared.contracts.failures import ADVICE
from tests.agent import step_bench
from tests.agent.step_bench import StepBench
from tests.pages import blocks
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process

ROOT = packages.ROOT
PAGE = (ROOT / "docs" / "operations" / "nodes.md").read_text()
UNIT = ROOT / "agent" / "systemd" / "berth-agent.service"
COMMAND = "/usr/local/bin/berth-agent"
HIDING = ("Protect", "Private", "Inaccessible", "ReadOnly", "SystemCall", "Restrict", "Device")
"""Beginnings of settings that change what workers see or may call."""
NO_CONFIG = importlib.util.find_spec("berth_agent.node") is None
SETTING = re.compile(r"^# (\w+ = .*)$", re.MULTILINE)


def run(command: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.defpath}"
    done = subprocess.run(
        command,
        env={"PATH": path, "DESTDIR": str(folder / "root"), **env},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def settings_of_the_unit() -> dict[str, str]:
    unit = RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    return dict(unit["Service"])


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "agent").symlink_to(ROOT / "agent")
    script = "\n".join(blocks(PAGE))
    site = tmp_path / "site"
    run(["bash", "-eux", "-c", script], tmp_path, PYTHONPATH=str(ROOT), PIP_TARGET=str(site))
    installed = {
        str(path.relative_to(tmp_path / "root")) for path in (tmp_path / "root").rglob("*")
    }
    assert {
        "usr/local/bin/berth-agent",
        "etc/systemd/system/berth-agent.service",
        "etc/berth-agent/config.toml",
    } <= installed
    receiver = TelemetryReceiver(str(tmp_path / "telemetry"), "5ecret", "0/1/0/0")
    reports, reports_checkpoint = blocks(PAGE, "python")
    environ = {"BERTH_TELEMETRY": str(tmp_path / "telemetry"), "BERTH_TELEMETRY_TOKEN": "5ecret"}
    for example in (reports, reports_checkpoint):
        run([sys.executable, "-c", example], tmp_path, PYTHONPATH=str(site), **environ)
    taken, written = receiver.take_iterations(), receiver.take_checkpoint()
    receiver.close()
    iterations = taken[0].message("0/1/0/0", 0, 0)
    assert len(iterations.iteration_s) == 5
    assert all(seconds > 0 for seconds in iterations.iteration_s)
    assert written is not None and written.step == 1200


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """The command is replaced by one that exists on this machine."""
    text = UNIT.read_text()
    assert f"ExecStart={COMMAND} run\n" in text
    (tmp_path / UNIT.name).write_text(text.replace(f"ExecStart={COMMAND}", "ExecStart=/bin/true"))
    done = run(["systemd-analyze", "verify", "--man=no", UNIT.name], tmp_path)
    unknown = "Unknown key 'DelegateSubgroup' in section [Service], ignoring."
    lines = [line for line in done.stderr.splitlines() if not line.endswith(unknown)]
    assert lines == [], "versions before 254 ignore one key"


def test_the_unit_spares_the_steps_and_what_they_need() -> None:
    settings = settings_of_the_unit()
    expected = {
        "KillMode": "process",
        "Restart": "always",
        "OOMPolicy": "continue",
        "RuntimeDirectoryPreserve": "yes",
        "StateDirectory": "berth-agent",
        "RuntimeDirectory": "berth-agent",
        "Delegate": "yes",
    }
    assert {name: settings[name] for name in expected} == expected
    assert [name for name in settings if name.startswith(HIDING)] == []
    assert "NoNewPrivileges" not in settings


REASON_IN_CODE = re.compile(
    r'(?:StartRefused\(|Failure\(\s*reason=|reason(?:, self\.detail)? = )"(\w+)"'
)
ELSEWHERE = {"start_timeout", "gpu_busy", "no_such_gpu"} | {
    "engine_cancelled",
    "engine_refused",
    "engine_unsupported",
    "engine_waits",
}
"""Reasons of placement, of executors that hold workers themselves, and of those of engines, whose
reasons are in docs/slurm.md."""


def test_each_reason_of_a_failure_has_a_meaning_words_and_advice() -> None:
    table = PAGE.partition("| reason | meaning |")[2].partition("\n\n")[0]
    listed = {
        name
        for row in table.splitlines()
        for name in re.findall(r"`(\w+)`", row[: row.find("|", 1)])
    }
    assert listed | ELSEWHERE == ADVICE.keys() == REASONS.keys()
    folders = (ROOT / "agent" / "berth_agent", ROOT / "services" / "executor" / "agents")
    sources = [path.read_text() for folder in folders for path in folder.rglob("*.py")]
    named = {name for text in sources for name in REASON_IN_CODE.findall(text)}
    assert {"no_uid", "secret_missing"} < named <= listed


@pytest.mark.skipif(NO_CONFIG, reason="this version of the agent reads no configuration yet")
def test_the_example_shows_each_setting_with_its_default() -> None:
    config: Any = importlib.import_module("berth_agent.node.config")
    text = (ROOT / "agent" / "config.toml").read_text()
    assert tomllib.loads(text) == {}
    shown = tomllib.loads("\n".join(SETTING.findall(text)))
    defaults = config.Config()
    assert set(shown) == set(config.Config.__dataclass_fields__)
    assert config.make(shown) == defaults


def test_a_step_outlives_the_file_that_it_was_started_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packages.build_archive(ROOT / "agent", tmp_path / "berth-agent.pyz")
    monkeypatch.setattr(step_bench, "AGENT", archive)
    bench = StepBench(tmp_path)
    try:
        bench.start("echo begun; sleep 1000")
        assert bench.line("begun")
        archive.write_bytes(b"another version")
        bench.stop(0)
        assert bench.end()["stopped"] is True
        assert bench.living() == []
    finally:
        bench.close()


@pytest.mark.parametrize("folder", ["step", "linux"])
def test_a_step_imports_nothing_after_its_start(folder: str) -> None:
    paths = sorted((ROOT / "agent" / "berth_agent" / folder).glob("*.py"))
    functions = [
        (path.name, node)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert functions
    for name, function in functions:
        late = [n for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
        assert late == [], f"{name}: {function.name}"
