"""Access's shell: the decider under the common host, with telemetry."""

from __future__ import annotations

from services.access.core.decide import Access
from services.access.settings import AccessSettings
from shared.bus.host import run_service
from shared.telemetry.setup import telemetry_for
from shared.telemetry.shell import observer, serve


def run(settings: AccessSettings) -> None:
    """Serves until SIGTERM."""
    telemetry = telemetry_for("access", settings)
    serve(telemetry, settings.metrics_port, settings.data / "access.ready")
    try:
        run_service(Access(settings.partitions), settings=settings, on_accepted=observer(telemetry))
    finally:
        telemetry.spans.shutdown()
