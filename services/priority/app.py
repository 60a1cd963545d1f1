"""Priority's shell: the decider under the common host, with telemetry."""

from __future__ import annotations

from services.priority.core.decide import Priority
from services.priority.core.state import PriorityState
from services.priority.figures import figures
from services.priority.model_files import read_models
from services.priority.settings import PrioritySettings
from shared.bus.hosting.host import run_service
from shared.bus.hosting.probe import probe_lanes
from shared.bus.lane.lane import Lane
from shared.telemetry.setup import start_telemetry
from shared.telemetry.shell import observer, serve_metrics


def run(settings: PrioritySettings) -> None:
    """Serve until SIGTERM."""
    telemetry = start_telemetry("priority", settings)
    serve_metrics(telemetry, settings, "priority")

    async def recall(lane: Lane[PriorityState]) -> None:
        telemetry.spans.remember_waiting(lane.state.waiting.values())
        if (last := lane.state.last_order) is not None:
            by = last.policy
            telemetry.spans.remember_policy(by.base_policy, by.learned, by.model_sha256)

    try:
        run_service(
            Priority(read_models(settings.models)),
            settings=settings,
            on_accepted=observer(telemetry),
            on_lane=recall,
            background=lambda lanes: probe_lanes(lanes, telemetry.metrics, figures),
        )
    finally:
        telemetry.spans.shutdown()
