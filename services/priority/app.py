"""Priority's shell: the decider under the common host, with telemetry."""

from __future__ import annotations

from services.priority.core.decide import Priority
from services.priority.model_files import read_models
from services.priority.settings import PrioritySettings
from shared.bus.host import run_service
from shared.telemetry.setup import telemetry_for
from shared.telemetry.shell import observer, serve


def run(settings: PrioritySettings) -> None:
    """Serves until SIGTERM."""
    telemetry = telemetry_for("priority", settings)
    serve(telemetry, settings.metrics_port, settings.data / "priority.ready")
    try:
        run_service(
            Priority(read_models(settings.models)),
            settings=settings,
            on_accepted=observer(telemetry),
        )
    finally:
        telemetry.spans.shutdown()
