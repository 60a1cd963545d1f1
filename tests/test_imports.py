"""The import rules hold, and each of them is reported when it is broken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "benchmarks",
    "agent/berth_agent",
    "client/berth_client",
    "reporter/berth_reporter",
    "cli",
    "infra",
    "services",
    "shared",
    "simulator",
    "training",
)
"""Folders below the root; in the copy all of them lie side by side."""
BROKEN = [
    ("core", "services/priority/core/broken_clock.py", "time"),
    ("core", "services/priority/core/broken_broker.py", "aiokafka"),
    ("core", "services/priority/core/broken_bus.py", "shared.bus.logs.kafka"),
    ("core", "shared/contracts/broken_log.py", "logging"),
    ("independence", "services/publisher/broken_peer.py", "services.gateway.settings"),
    ("layers", "shared/telemetry/broken_service.py", "services.gateway.settings"),
    ("layers", "shared/bus/broken_infra.py", "infra.supervisor.stack"),
    ("tests", "benchmarks/broken_test.py", "tests"),
    ("layers", "infra/broken_layer.py", "services.gateway.settings"),
    ("layers", "services/publisher/broken_layer.py", "cli.api.target"),
    ("layers", "simulator/broken_layer.py", "benchmarks.spine"),
    ("core", "shared/ledger/broken_clock.py", "time"),
    ("shared", "shared/ledger/broken_layer.py", "shared.telemetry.setup"),
    ("shared", "shared/telemetry/broken_layer.py", "shared.bus.logs.kafka"),
    (
        "placement",
        "services/placement/core/pool/broken_layer.py",
        "services.placement.core.round.view",
    ),
    (
        "placement",
        "services/placement/core/round/broken_layer.py",
        "services.placement.core.decide",
    ),
    ("lane", "shared/bus/lane/draft.py", "time"),
    ("lane", "shared/bus/lane/rounds.py", "time"),
    ("archive", "shared/bus/archive/cut.py", "time"),
    ("alone", "services/publisher/broken_alone.py", "berth_agent.messages"),
    ("faust", "shared/telemetry/broken_faust.py", "faust"),
    ("faust", "services/priority/core/broken_faust.py", "faust"),
    ("asyncpg", "services/publisher/broken_sql.py", "asyncpg"),
    ("asyncpg", "infra/broken_sql.py", "asyncpg"),
    ("kafka-python", "services/publisher/broken_kafka.py", "kafka"),
    ("kafka-python", "shared/bus/broken_kafka.py", "kafka"),
    ("cli", "cli/text/broken_layer.py", "cli.api.target"),
    ("agent", "berth_agent/step/broken_layer.py", "berth_agent.node.agent"),
    ("agent-core", "berth_agent/core/broken_clock.py", "time"),
]


CIRCLE = ("infra/machine/broken_circle.py", "infra.broker.kafka")
"""It makes packages of infra import each other."""


def _settings() -> dict[str, dict[str, Any]]:
    """Return the contract of each id."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {contract["id"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}


def _contracts() -> dict[str, str]:
    return {key: contract["name"] for key, contract in _settings().items()}


def _lint(folder: Path) -> str:
    tool = Path(sys.executable).with_name("lint-imports")
    above = (folder, *(folder / name for name in ("agent", "client", "reporter")))
    path = os.pathsep.join(map(str, above))
    done = subprocess.run(
        [tool, "--no-logo", "--no-cache"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Report of a copy in which every rule is broken: id of the contract -> its part."""
    copy = tmp_path_factory.mktemp("copy")
    only_code = shutil.ignore_patterns("__pycache__", "*.json", "*.sql", "*.html")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / Path(package).name, ignore=only_code)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for path, module in (CIRCLE, *(rest for _, *rest in BROKEN)):
        (copy / path).write_text(f"import {module}\n")
    details = _lint(copy).partition("Broken contracts")[2]
    contracts = _contracts()
    starts = {key: details.find(f"\n{name}\n") for key, name in contracts.items()}
    ends = sorted([*starts.values(), len(details)])
    return {key: details[at : ends[ends.index(at) + 1]] for key, at in starts.items() if at >= 0}


@pytest.mark.process
def test_no_rule_is_broken() -> None:
    result = _lint(ROOT)
    assert f"{len(_contracts())} kept, 0 broken" in result, result


@pytest.mark.process
@pytest.mark.parametrize(("contract", "path", "module"), BROKEN)
def test_a_broken_rule_is_reported(
    report: dict[str, str], contract: str, path: str, module: str
) -> None:
    importer = path.removesuffix(".py").replace("/", ".")
    assert f"{importer} -> {module}" in report.get(contract, ""), report


def test_a_circle_is_reported(report: dict[str, str]) -> None:
    assert "No cycles are allowed in infra." in report["acyclic"]


def test_every_rule_is_broken_once() -> None:
    assert {"acyclic", *(contract for contract, _, _ in BROKEN)} == set(_contracts())
