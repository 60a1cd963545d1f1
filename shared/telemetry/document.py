"""Writes docs/metrics.md from the closed list: `python -m shared.telemetry.document`."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from shared.telemetry.metric_names import METRICS, MetricName, samples
from shared.telemetry.metric_spec import Group, Spec

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
TITLES: dict[Group, str] = {
    "process": "Every process",
    "bus": "What moves records: deciders, projector, publisher, gateway, executors",
    "admission": "Admission",
    "priority": "Priority",
    "placement": "Placement",
    "failslow": "Fail-slow",
    "throttle": "Throttle",
    "executor": "Executors of agents",
    "gateway": "Gateway",
    "notifier": "Notifier",
}
HEAD = """\
# Metrics

Generated from `shared/telemetry/metric_names.py` by `make metrics`; a metric that is not on the
list cannot be created. Each service answers `/metrics` on its own port (`BERTH_METRICS_PORT`,
`BERTH_METRICS_HOST`); with `process_resident_memory_bytes` and
`process_cpu_seconds_total` beside them. Gauges of a pool or an endpoint come from the service that
holds its lane, are computed at most once per second, and disappear with the lane. Shares and ratios
are between 0 and 1, times are wall seconds.
"""


def document() -> str:
    """Return the text of the document."""
    parts = [HEAD]
    for group in get_args(Group):
        parts.append(
            f"## {TITLES[group]}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|"
        )
        parts += [_row(name, spec) for name, spec in METRICS.items() if spec.group == group]
        parts.append("")
    return "\n".join(parts)


def _row(name: MetricName, spec: Spec) -> str:
    shown = name if spec.kind == "histogram" else samples(name)[0]
    labels = ", ".join(f"`{label}`" for label in spec.labels)
    return f"| `{shown}` | {spec.kind} | {labels} | {spec.text} |"


if __name__ == "__main__":
    DOCUMENT.write_text(document())
