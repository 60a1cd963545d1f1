"""Options of a simulation, as the command line names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from services.executor.core.virtual.inventory import InventoryNode
from shared.contracts.pools import (
    LOG_SCORE_MARGIN,
    ConfigurePool,
    PoolConfigured,
    PoolSettings,
    default_of,
)
from simulator.engine.failures import NodeFailure, draw_failures, failures_from_faults
from simulator.engine.scenario import POOL, Scenario, Walltime, simulated_pool
from simulator.engine.sizing import (
    Sizing,
    equal_nodes,
    load_of,
    nodes_for_load,
    stretch_arrivals,
    window_of,
)
from simulator.workload.rows import NODE_GPUS, WorkloadJob

TIME_SCALE = 60.0
"""Cluster seconds per second of the pool's clock: a queue is ranked every 5 cluster minutes."""


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """Options of one simulation; those with the name of a pool setting are that setting.

    `nodes` alone fixes the pool, `load` alone sizes it; both together stretch the arrivals.
    """

    base_policy: str = "fcfs"
    runtime: str = default_of("runtime")
    queue_mode: str = default_of("queue_mode")
    easy_runtime: str = default_of("easy_runtime")
    guard_predictions: bool = default_of("guard_predictions")
    reserve_after_s: float | None = default_of("reserve_after_s")
    preemption: str = default_of("preemption")
    learned: str | None = None
    solver: str = "greedy"
    nodes: int | None = None
    gpus_per_node: int = NODE_GPUS
    load: float | None = None
    last_share: float = 0.4
    time_scale: float = TIME_SCALE
    restart_s: float = 60.0
    restart_growth: float = 0.0
    checkpoint_s: float | None = 300.0
    checkpoint_spread: float = 0.0
    checkpoint_cost_s: float = 0.0
    fixed_share: float = 0.0
    min_residency_s: float = default_of("min_residency_s")
    preempt_margin: float | None = None
    """None: `LOG_SCORE_MARGIN` where scores are logarithms, else the default of pools."""
    preemption_protection: str = default_of("preemption_protection")
    loss_share: float = default_of("loss_share")
    large_gang_share: float = default_of("large_gang_share")
    defragment_after_s: float = default_of("defragment_after_s")
    tenant_floor: float = default_of("tenant_floor")
    walltime: Walltime = "none"
    failures: bool = False
    seed: int = 0
    faults: Sequence[tuple[str, float, float]] = field(default_factory=tuple)
    """Recorded (server, start, end) to take failures from, instead of drawing them."""


DEFAULT_LOAD = 0.9
RATIOS = frozenset({"gittins", "srsf"})
"""Policies whose scores are logarithms."""


def build_scenario(
    jobs: Sequence[WorkloadJob], options: SimulationOptions
) -> tuple[Scenario, Sizing]:
    """Build a scenario. Raises ValueError for jobs that give no load to size a pool by."""
    fitted, sizing = size_pool(jobs, options)
    nodes = equal_nodes(sizing.nodes, options.gpus_per_node, pool=POOL)
    pool = configure_pool(options)
    scenario = Scenario(
        jobs=fitted,
        nodes=nodes,
        pool=pool,
        window_s=sizing.window_s,
        restart_s=options.restart_s,
        restart_growth=options.restart_growth,
        checkpoint_s=options.checkpoint_s,
        checkpoint_spread=options.checkpoint_spread,
        checkpoint_cost_s=options.checkpoint_cost_s,
        fixed_share=options.fixed_share,
        walltime=options.walltime,
        failures=plan_failures(fitted, nodes, options),
    )
    return scenario, sizing


def configure_pool(options: SimulationOptions) -> PoolConfigured:
    """Return the pool's settings. Raises pydantic's ValidationError where the command would."""
    names = PoolSettings.model_fields.keys() & {field.name for field in fields(options)}
    settings = {name: getattr(options, name) for name in names}
    settings["preempt_margin"] = margin_of(options)
    ConfigurePool(pool=POOL, **settings)
    return simulated_pool(**settings)


def margin_of(options: SimulationOptions) -> float:
    """Return the preemption margin, by default that of the policy."""
    if options.preempt_margin is not None:
        return options.preempt_margin
    default: float = default_of("preempt_margin")
    return LOG_SCORE_MARGIN if options.learned or options.base_policy in RATIOS else default


def size_pool(
    jobs: Sequence[WorkloadJob], options: SimulationOptions
) -> tuple[Sequence[WorkloadJob], Sizing]:
    """Return the jobs, with stretched arrivals if requested, and the size of the pool."""
    gpus, share = options.gpus_per_node, options.last_share
    if options.nodes is None:
        return jobs, nodes_for_load(jobs, options.load or DEFAULT_LOAD, share, gpus)
    if options.load is not None:
        factor = load_of(jobs, options.nodes, gpus, window_of(jobs, share)) / options.load
        jobs = stretch_arrivals(jobs, factor)
    window_s = window_of(jobs, share)
    load = load_of(jobs, options.nodes, gpus, window_s)
    return jobs, Sizing(options.nodes, gpus, load, window_s)


def plan_failures(
    jobs: Sequence[WorkloadJob], nodes: dict[str, InventoryNode], options: SimulationOptions
) -> list[NodeFailure]:
    """Return the failures of the nodes during the trace, none unless requested."""
    if not options.failures:
        return []
    begin_s, end_s = jobs[0].submit_s, jobs[-1].submit_s
    if options.faults:
        return failures_from_faults(options.faults, sorted(nodes), begin_s, options.seed)
    return draw_failures(sorted(nodes), begin_s, end_s, options.seed)
