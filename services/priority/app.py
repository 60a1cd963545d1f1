"""Priority's shell: the decider under the common host, with telemetry."""

from __future__ import annotations

from services.priority.core.decide import Priority
from services.priority.core.state import Queue
from services.priority.figures import figures
from services.priority.model_files import read_models
from services.priority.settings import PrioritySettings
from shared.bus.domain import Domain
from shared.bus.host import run_service
from shared.telemetry.probe import probe
from shared.telemetry.setup import telemetry_for
from shared.telemetry.shell import observer, serve


def run(settings: PrioritySettings) -> None:
    """Serves until SIGTERM."""
    telemetry = telemetry_for("priority", settings)
    serve(telemetry, settings, "priority")

    async def recall(domain: Domain[Queue]) -> None:
        telemetry.spans.waits(domain.state.waiting.values())

    try:
        run_service(
            Priority(read_models(settings.models)),
            settings=settings,
            on_accepted=observer(telemetry),
            on_lane=recall,
            background=lambda lanes: probe(lanes, telemetry.metrics, figures),
        )
    finally:
        telemetry.spans.shutdown()
