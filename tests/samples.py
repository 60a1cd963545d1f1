"""Names under which Prometheus has what the metrics measure."""

from __future__ import annotations

from shared.telemetry.metric_names import METRICS, samples

STANDARD = frozenset({"process_resident_memory_bytes", "process_cpu_seconds_total", "up"})
"""From prometheus_client and from Prometheus itself."""


QUERYABLE = frozenset[str](sample for name in METRICS for sample in samples(name)) | STANDARD
"""All sample names that alerts and dashboards may use."""
