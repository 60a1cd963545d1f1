"""A dashboard as data: rows of panels with queries, laid out and numbered automatically."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Unit = Literal["short", "s", "percentunit", "bytes", "ops"]
Kind = Literal["timeseries", "stat", "table"]

COLUMNS, HEIGHT = 24, 8
SCHEMA_VERSION = 39
SOURCE = {"type": "prometheus", "uid": "berth"}


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL query and the legend of its series."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel; values from `warn` on are drawn red."""

    title: str
    queries: Sequence[Query]
    unit: Unit = "short"
    kind: Kind = "timeseries"
    width: int = 8
    text: str = ""
    warn: float | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard; `uid` is also its file name."""

    uid: str
    title: str
    panels: Sequence[Panel]
    variables: Sequence[tuple[str, str]] = field(default=())
    """Template variables: name and query, as in `label_values(metric, label)`."""


def rendered(board: Board) -> Json:
    """Return the dashboard as Grafana's provisioning reads it."""
    return {
        "uid": board.uid,
        "title": board.title,
        "tags": ["berth"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": False,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_variable(*variable) for variable in board.variables]},
        "panels": list(_laid_out(board.panels)),
    }


def _laid_out(panels: Iterable[Panel]) -> Iterator[Json]:
    """Return grid positions from left to right, wrapping to a new row."""
    x = y = 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > COLUMNS:
            x, y = 0, y + HEIGHT
        place = {"x": x, "y": y, "w": panel.width, "h": HEIGHT}
        yield _panel(panel, number, place)
        x += panel.width


def _panel(panel: Panel, number: int, place: Json) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    if panel.warn is not None:
        steps.append({"color": "red", "value": panel.warn})
    return {
        "id": number,
        "title": panel.title,
        "description": panel.text,
        "type": panel.kind,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "thresholds": {"mode": "absolute", "steps": steps},
                "custom": {"fillOpacity": 10, "showPoints": "never"}
                if panel.kind == "timeseries"
                else {},
            },
            "overrides": [],
        },
        "targets": [
            _target(panel, *target) for target in zip("ABCDEFGH", panel.queries, strict=False)
        ],
    }


def _target(panel: Panel, ref: str, query: Query) -> Json:
    return {
        "refId": ref,
        "datasource": SOURCE,
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "instant": panel.kind == "table",
        "format": "table" if panel.kind == "table" else "time_series",
    }


def _variable(name: str, query: str) -> Json:
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "multi": False,
        "current": {"selected": True, "text": "All", "value": "$__all"},
    }
