"""Dashboards: what is committed is what the code says, and every panel asks for what exists."""

from __future__ import annotations

import json
from pathlib import Path

import promql_parser
import pytest
import yaml

from infra.grafana.build import BOARDS, FOLDER, files
from infra.grafana.panels import COLUMNS, SOURCE, rendered
from shared.telemetry.metric_names import METRICS
from shared.telemetry.metric_spec import Spec
from tests.infra.prometheus.test_alerts import LABELS, selectors
from tests.samples import QUERYABLE

PROVISIONING = FOLDER.parent / "provisioning"
VARIABLES = {"$__rate_interval": "5m", "$pool": "p", "$endpoint": "e", "$service": "s"}
EXPRESSIONS = sorted(
    {query.expression for board in BOARDS for panel in board.panels for query in panel.queries}
)
UNSEEN = {"berth_info", "berth_admitted_jobs"}
"""Of the closed list: one names the services, one is what the phases add up to."""


def plain(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


def test_the_committed_dashboards_are_fresh() -> None:
    committed = {path.name: path.read_text() for path in FOLDER.glob("*")}
    assert committed == files(), "run make metrics"


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_panel_asks_for_metrics_and_labels_that_exist(expression: str) -> None:
    names_used = list(selectors(plain(expression)))
    assert names_used and {one.name for one in names_used} <= QUERYABLE
    for one in names_used:
        spec = METRICS.get((one.name or "").removesuffix("_total"), Spec("gauge", "process", ""))  # type: ignore[call-overload]
        labels = {matcher.name for matcher in one.matchers.matchers}
        assert labels <= LABELS
        assert labels <= {*spec.labels, "service", "job", "le"}


def test_every_metric_is_on_some_dashboard() -> None:
    shown = " ".join(EXPRESSIONS)
    assert {name for name in METRICS if name not in shown} == UNSEEN


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="."):
        promql_parser.parse("sum by (x) (rate(berth_decisions_total[5m])")


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_panels_lie_side_by_side(board: object) -> None:
    taken: set[tuple[int, int]] = set()
    panels = rendered(board)["panels"]  # type: ignore[arg-type]
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, at["y"]) for x in range(at["x"], at["x"] + at["w"])}
        assert at["x"] + at["w"] <= COLUMNS and not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_provisioned_sources_are_those_of_the_dashboards() -> None:
    (source,) = _listed("datasources", "datasources")
    assert {"uid": source["uid"], "type": "prometheus"} == SOURCE
    (provider,) = _listed("dashboards", "providers")
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
    assert all(json.loads(text)["uid"] + ".json" == name for name, text in files().items())


def _listed(folder: str, name: str) -> list[dict[str, dict[str, str]]]:
    (path,) = Path(PROVISIONING / folder).glob("*.yml")
    names_used = yaml.safe_load(path.read_text())[name]
    assert isinstance(names_used, list)
    return names_used
