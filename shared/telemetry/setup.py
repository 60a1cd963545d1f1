"""Sets up logs, spans and metrics of a service according to its settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shared.process.settings import BadSettings
from shared.telemetry.json_logs import log_json, log_uncaught_errors
from shared.telemetry.metrics import Metrics
from shared.telemetry.spans import Spans

DEFAULT_LEVEL = "INFO"


class TelemetrySettings(Protocol):
    """Any `shared.process.settings.Settings`; a `log_level` field is optional."""

    @property
    def otlp(self) -> str: ...

    @property
    def otlp_ca(self) -> Path | None: ...

    @property
    def instance(self) -> str: ...

    @property
    def trace_sample(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Spans and metrics of a service; its shell calls `spans.shutdown()` last."""

    spans: Spans
    metrics: Metrics


def start_telemetry(service: str, settings: TelemetrySettings) -> Telemetry:
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
