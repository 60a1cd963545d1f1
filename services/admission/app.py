"""The shell of admission: runs the decider in the common host, with telemetry."""

from __future__ import annotations

from services.admission.core.decide import Admission
from services.admission.figures import figures
from shared.bus.hosting.host import run_service
from shared.bus.hosting.probe import probe_lanes
from shared.process.settings import Settings
from shared.telemetry.setup import start_telemetry
from shared.telemetry.shell import observer, serve_metrics


def run(settings: Settings) -> None:
    """Serve until SIGTERM."""
    telemetry = start_telemetry("admission", settings)
    serve_metrics(telemetry, settings, "admission")
    try:
        run_service(
            Admission(),
            settings=settings,
            on_accepted=observer(telemetry),
            background=lambda lanes: probe_lanes(lanes, telemetry.metrics, figures),
        )
    finally:
        telemetry.spans.shutdown()
