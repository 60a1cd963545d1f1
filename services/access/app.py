"""The shell of access: runs the decider in the common host, with telemetry."""

from __future__ import annotations

from services.access.core.decide import Access
from services.access.settings import AccessSettings
from shared.bus.hosting.host import run_service
from shared.bus.hosting.probe import probe_lanes
from shared.telemetry.setup import start_telemetry
from shared.telemetry.shell import observer, serve_metrics


def run(settings: AccessSettings) -> None:
    """Serve until SIGTERM."""
    telemetry = start_telemetry("access", settings)
    serve_metrics(telemetry, settings, "access")
    try:
        run_service(
            Access(settings.partitions, settings.node_credential_days),
            settings=settings,
            on_accepted=observer(telemetry),
            background=lambda lanes: probe_lanes(lanes, telemetry.metrics, lambda state, now: ()),
        )
    finally:
        telemetry.spans.shutdown()
