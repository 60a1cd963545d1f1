"""One call in a service's `__main__`: logs, spans and metrics, as its settings say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from shared.telemetry.json_logs import log_json
from shared.telemetry.metrics import Metrics
from shared.telemetry.spans import Spans

DEFAULT_LEVEL = "INFO"


class TelemetrySettings(Protocol):
    """Any `shared.settings.Settings`; a `log_level` field is heeded where a service has one."""

    @property
    def otlp(self) -> str: ...

    @property
    def instance(self) -> str: ...

    @property
    def trace_sample(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a shell is given; it calls `spans.shutdown()` last."""

    spans: Spans
    metrics: Metrics


def telemetry_for(service: str, settings: TelemetrySettings) -> Telemetry:
    log_json(service, str(getattr(settings, "log_level", DEFAULT_LEVEL)))
    metrics = Metrics(service, settings.instance)
    spans = Spans(service, settings.otlp, settings.instance, metrics, settings.trace_sample)
    return Telemetry(spans, metrics)
