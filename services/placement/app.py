"""Placement's shell: the decider under the common host, the heartbeat reader, the solver, and the
schedulers of pools."""

from __future__ import annotations

import asyncio

from services.placement.core.decide import Placement
from services.placement.core.pool.state import Pool
from services.placement.figures import figures
from services.placement.heartbeats import watch
from services.placement.lane_signals import LaneSignals
from services.placement.open_proposals import make_open_proposals
from services.placement.open_rounds import solve_open_rounds
from services.placement.refused_proposals import log_refused
from services.placement.shadow_proposals import ShadowViews, make_shadow_proposals
from services.placement.solver.process import Solver
from shared.bus.hosting.host import run_service
from shared.bus.hosting.probe import probe_lanes
from shared.bus.lane.lane import Lane
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.base import Model, UnknownType
from shared.contracts.node_problems import NodeProblemsReported
from shared.contracts.placement import RoundOpened
from shared.contracts.pools import PoolConfigured
from shared.contracts.proposals import ProposalReady
from shared.contracts.reports import CheckpointsReported, ExecutorReported, ProgressReported
from shared.contracts.schedules import ProposalOpened
from shared.contracts.solver_plan import PlanReady
from shared.ledger.decider import Fact
from shared.process.settings import Settings
from shared.telemetry.setup import start_telemetry
from shared.telemetry.shell import observer, serve_metrics


def decode_report(topic: str, type_: str, data: bytes) -> Model:
    """`reports` is the one plain topic of this service that holds no commands."""
    for model in (ExecutorReported, CheckpointsReported, ProgressReported, NodeProblemsReported):
        if type_ == model.TYPE:
            return model.model_validate_json(data)
    raise UnknownType(type_)


def run(settings: Settings) -> None:
    """Run the service until SIGTERM."""
    telemetry = start_telemetry("placement", settings)
    serve_metrics(telemetry, settings, "placement")
    observe = observer(telemetry)
    metrics, spans = telemetry.metrics, telemetry.spans

    def on_answer(reply: PlanReady) -> None:
        metrics.rounds.labels(reply.status).inc()
        metrics.solve_s.observe(reply.solve_ms / 1000)

    def on_proposal(answer: ProposalReady) -> None:
        status = "refused" if answer.refused else answer.failed or "made"
        metrics.proposals.labels(status).inc()
        metrics.propose_s.observe(answer.propose_ms / 1000)

    solver, rounds = Solver(), LaneSignals(RoundOpened, PoolConfigured)
    proposals, shadows = LaneSignals(ProposalOpened, PoolConfigured), ShadowViews()

    def accepted(facts: list[Fact], parents: list[str], started_ns: int) -> None:
        observe(facts, parents, started_ns)
        rounds.accepted(facts)
        proposals.accepted(facts)
        shadows.signals.accepted(facts)
        log_refused(facts)

    async def run_lane(lane: Lane[Pool]) -> None:
        for job in lane.state.jobs.values():
            spans.remember_job(job.job_id, job.trace)
        heartbeats = KafkaLog(settings.connection, client="berth-heartbeats", gather_ms=500)
        await asyncio.gather(
            watch(lane, heartbeats),
            solve_open_rounds(lane, solver, rounds, on_answer),
            make_open_proposals(lane, proposals, on_proposal, on_view=shadows.note),
            make_shadow_proposals(lane, shadows),
        )

    try:
        run_service(
            Placement(),
            settings=settings,
            decode=decode_report,
            on_accepted=accepted,
            on_lane=run_lane,
            background=lambda lanes: probe_lanes(lanes, metrics, figures),
        )
    finally:
        spans.shutdown()
