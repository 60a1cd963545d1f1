"""Sets up logs, spans and metrics of a service according to its settings."""

from __future__ import annotations

from dataclasses import dataclass

from shared.process.settings import BadSettings, Settings
from shared.telemetry.json_logs import log_json, log_uncaught_errors
from shared.telemetry.metrics import Metrics
from shared.telemetry.spans import Spans

DEFAULT_LEVEL = "INFO"


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Spans and metrics of a service; its shell calls `spans.shutdown()` last."""

    spans: Spans
    metrics: Metrics


def start_telemetry(service: str, settings: Settings) -> Telemetry:
    """Set up telemetry; raises BadSettings if the OTLP settings are invalid."""
    log_json(service, str(getattr(settings, "log_level", DEFAULT_LEVEL)))
    log_uncaught_errors()
    metrics = Metrics(service, settings.instance)
    share, ca = settings.trace_sample, settings.otlp_ca
    try:
        spans = Spans(service, settings.otlp, settings.instance, metrics, share, ca)
    except ValueError as error:
        raise BadSettings(f"BERTH_OTLP, BERTH_OTLP_CA: {error}") from None
    return Telemetry(spans, metrics)
