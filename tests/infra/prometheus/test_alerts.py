"""Alert rules: they parse, fire when they should, name metrics that exist and pages that do."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from infra.supervisor.stack import SERVICES
from shared.telemetry.metric_names import METRICS, samples
from tests.samples import QUERYABLE, STANDARD

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("services", "shared")
FOLDER = ROOT / "infra" / "prometheus"
RULES = yaml.safe_load((FOLDER / "alerts.yml").read_text())
CONFIG = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
ALERTS: list[dict[str, Any]] = [rule for group in RULES["groups"] for rule in group["rules"]]
LABELS = {label for spec in METRICS.values() for label in spec.labels} | {"service", "job", "le"}

each = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
with_promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="promtool (Debian: prometheus) is not installed"
)


def selectors(expression: str) -> Iterator[promql_parser.VectorSelector]:
    """Every metric that an expression reads; ValueError where it does not parse."""
    expressions: list[promql_parser.VectorSelector] = []

    def visit(node: Any) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            expressions.append(node)
        elif isinstance(node, promql_parser.MatrixSelector):
            expressions.append(node.vector_selector)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    yield from expressions


@each
def test_an_alert_reads_only_metrics_and_labels_that_exist(alert: dict[str, Any]) -> None:
    expressions = list(selectors(alert["expr"]))
    assert expressions and {one.name for one in expressions} <= QUERYABLE
    assert {matcher.name for one in expressions for matcher in one.matchers.matchers} <= LABELS


@each
def test_an_alert_links_to_a_section_of_a_runbook(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in ("page", "ticket")
    path, _, anchor = alert["annotations"]["runbook"].partition("#")
    page = (ROOT / path).read_text()
    assert not anchor or anchor in {
        heading.lower() for heading in re.findall(r"^### (\w+)", page, re.M)
    }


@cache
def metrics_with_a_source() -> set[str]:
    """Return the metrics that services emit: as a figure, or through an instrument that is used."""
    texts = {path: path.read_text() for top in SOURCES for path in (ROOT / top).rglob("*.py")}
    instruments = texts.pop(ROOT / "shared" / "telemetry" / "metrics.py")
    functions = instruments.partition("\nasync def ")[2]
    used = "\n".join((*texts.values(), functions))
    emitted = set(re.findall(r'Figure\(\s*"(berth_\w+)"', used))
    # Each attribute or method of `Metrics` down to the next one, with the names that it makes.
    parts = re.split(r"(?=\n    def |\n        self\.\w+ = )", instruments)
    for part in parts:
        name = re.match(r"\s*(?:def |self\.)(\w+)", part)
        if name and re.search(rf"\.{name[1]}\b", used):
            emitted.update(re.findall(r'"(berth_\w+)"', part))
    return emitted


@each
def test_an_alert_reads_only_metrics_that_a_service_emits(alert: dict[str, Any]) -> None:
    read = {one.name or "" for one in selectors(alert["expr"])} - STANDARD
    of_metric = {sample: name for name in METRICS for sample in samples(name)}
    assert {of_metric[sample] for sample in read} <= metrics_with_a_source()


def test_a_metric_that_nothing_emits_is_found() -> None:
    assert "berth_archive_unreachable_seconds" in metrics_with_a_source()
    assert "berth_made_up_seconds" not in metrics_with_a_source()


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    cases = yaml.safe_load((FOLDER / "tests.yml").read_text())["tests"]
    fired = {c["alertname"] for t in cases for c in t["alert_rule_test"] if c.get("exp_alerts")}
    silent = {
        c["alertname"] for t in cases for c in t["alert_rule_test"] if not c.get("exp_alerts")
    }
    names = {alert["alert"] for alert in ALERTS}
    assert fired == names
    assert silent <= names and len(silent) >= len(names) - 2


def test_every_service_is_scraped_under_its_name() -> None:
    (job,) = CONFIG["scrape_configs"]
    output = {one["labels"]["service"]: one["targets"] for one in job["static_configs"]}
    assert output == {service.name: [f"{service.name}:9100"] for service in SERVICES}
    assert CONFIG["rule_files"] == ["alerts.yml"]


@with_promtool
@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "tests.yml"),
    ],
    ids=" ".join,
)
def test_promtool_agrees(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["promtool", *words], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@with_promtool
def test_promtool_sees_a_rule_that_never_fires(tmp_path: Path) -> None:
    """The tests of the rules can fail: without the threshold they do."""
    for name in ("alerts.yml", "tests.yml"):
        text = (FOLDER / name).read_text()
        (tmp_path / name).write_text(
            text.replace("berth_undecided_seconds) > 30", "berth_undecided_seconds) > 1e9")
        )
    done = subprocess.run(
        ["promtool", "test", "rules", "tests.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0 and "NoDecisionWhileWorkWaits" in done.stdout + done.stderr
