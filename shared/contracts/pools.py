"""Pools: their settings, each declared once, and the command and the event of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from shared.contracts.base import ABSENT, VERSION, Command, Event, Name, command, event
from shared.contracts.nodes import Backend

BasePolicy = Literal[
    "fcfs",
    "priority_class",
    "fair_share",
    "smallest_first",
    "sjf",
    "saf",
    "f1",
    "wfp3",
    "unicep",
    "multifactor",
    "qssf",
    "las",
    "gittins",
    "srtf",
    "srsf",
]
"""Base policies of a queue; `services/priority/core/policies/keys.py` holds the formula of each."""
RuntimeSource = Literal["user", "history", "oracle"]
"""Source of the run times that a policy uses; `oracle` reads the simulated duration."""
QueueMode = Literal["strict", "skip", "easy"]
EasyRuntime = Literal["user", "history"]
Preemption = Literal["class", "ranked"]
PreemptionProtection = Literal["residency", "progress"]
Solver = Literal["greedy", "cpsat"]
Packing = Literal["best_fit", "fragments"]
MitigationMode = Literal["off", "approve", "automatic"]
NEVER_S = 1e9
"""The longest time that a pool accepts, in cluster seconds: it switches the feature off."""
PREDICTED_WAIT_S = 1_209_600.0
"""Longest wait, in cluster s, that predictions alone may cause where they are guarded: then GPUs
are reserved."""
LOG_SCORE_MARGIN = 0.7
"""A `preempt_margin` where scores are logarithms: a factor of two between the keys."""
RELEASE: Final = 1
"""Number of this release, by which pools know that an upgrade to it is finished: see `releases`."""
Shadow = Annotated[
    str, Field(max_length=71, pattern=r"^(learned:)?[a-z0-9]([a-z0-9._-]*[a-z0-9])?$")
]
"""The name of a base policy, or `learned:` and the name of a learned policy."""


class PoolSettings(Command):
    """The one declaration of the settings of a pool: name, type, default, bounds and meaning.

    A new setting is a field here and a `recorded` field of `PoolConfigured`; `make contracts`. The
    REST API takes it from here; flags and simulators read its default by `default_of`.
    """

    TYPE: ClassVar[str] = ""
    OWNER: ClassVar[str] = "access"
    pool: Name = Field(description="the pool")
    time_scale: float = Field(
        1.0, gt=0, le=1e7, description="cluster seconds per wall second; 1 in production"
    )
    backends: tuple[Backend, ...] = Field(
        ("virtual",),
        description="backends its nodes may use; an engine is alone; `process` is retired",
    )
    lease_s: float = Field(
        30.0,
        gt=0,
        le=3600,
        description="nodes inside an executor (`virtual`): wall s after its last "
        "acknowledged heartbeat at which it has stopped its workers; lost after twice as long",
    )
    stop_after_s: Annotated[float, Field(ge=5, le=604800)] | Literal["keep"] = Field(
        600.0,
        description="nodes with an agent: wall s after the sending of the last acknowledged "
        "heartbeat at which their workers are killed; `keep`: they run on, whatever happens",
    )
    heartbeat_s: float = Field(5.0, ge=0.1, le=3600, description="s between heartbeats of an agent")
    request_timeout_s: float = Field(
        10.0, ge=0.1, le=3600, description="s until a request of an agent counts as lost"
    )
    reconnect_s: float = Field(
        10.0, ge=0.1, le=3600, description="longest s between two attempts of an agent to connect"
    )
    suspect_after_s: float = Field(
        30.0,
        gt=0,
        le=86400,
        description="nodes with an agent: wall s without a heartbeat until nothing new is placed",
    )
    kill_s: float = Field(
        15.0, ge=1, le=3600, description="s from a deadline until the last of its workers is dead"
    )
    clock_rate_bound: float = Field(
        1.25, ge=1, le=10, description="largest ratio of the rates of two machines' clocks"
    )
    slack_s: float = Field(
        5.0, ge=0, le=3600, description="s added to the silence after which a node is lost"
    )
    round_ms: int = Field(
        100, ge=1, le=60000, description="shortest interval between placement rounds, wall ms"
    )
    start_timeout_s: float = Field(
        60.0, gt=0, le=86400, description="wall s from JobPlaced until all workers must be ready"
    )
    base_policy: BasePolicy = Field("fair_share", description="base policy that orders the queue")
    learned: Name | None = Field(
        None,
        description="learned policy that re-ranks the base policy; absent: the base policy decides",
    )
    runtime: RuntimeSource = Field(
        "history", description="source of the run times that a policy uses"
    )
    shadows: tuple[Shadow, ...] = Field(
        (), max_length=8, description="policies that rank the same queue without effect"
    )
    queue_mode: QueueMode = Field(
        "skip", description="treatment of the jobs behind one that does not fit"
    )
    easy_runtime: EasyRuntime = Field(
        "history",
        description="under `easy`: source of the run times by which it reserves and backfills; "
        "`history`: predicted, at most the user's estimate; `user`: the user's estimate alone, "
        "without which a job may run for ever",
    )
    guard_predictions: bool = Field(
        True,
        description="history learns nothing of jobs that were cancelled or failed in a minute; "
        "under `easy` with predicted run times, estimates have a floor and GPUs are reserved after "
        "14 days of waiting: see RULES.md 9, 17",
    )
    use_progress: bool = Field(
        True,
        description="iterations that a training reports, with their total, say when it ends: for "
        "EASY backfill, start estimates and ranks; earlier releases cannot read these events",
    )
    preemption: Preemption = Field(
        "class", description="`ranked`: also by rank within one priority class"
    )
    min_residency_s: float = Field(
        300.0,
        ge=0,
        le=1e9,
        description="cluster s that a job runs before it may be preempted by rank",
    )
    preempt_margin: float = Field(
        0.0, ge=0, le=1e9, description="score by which a job must exceed its victim's"
    )
    preemption_protection: PreemptionProtection = Field(
        "progress",
        description="what protects a job from preemption by rank and from migrations for others; "
        "`residency`: `min_residency_s` and the cost of its last preemption; `progress`: "
        "checkpoints, growing protection and a loss budget as well",
    )
    checkpoint_window_s: float = Field(
        60.0,
        ge=0,
        le=NEVER_S,
        description="under `progress`: cluster s of work after a checkpoint within which a job may "
        "be preempted by rank, at least 1/20 of its interval; 1e9: at any time",
    )
    start_protection_s: float = Field(
        600.0,
        ge=0,
        le=1e6,
        description="under `progress`: cluster s of work of each start before it may be preempted "
        "by rank; doubles with each restart beyond `cheap_restarts`",
    )
    cheap_restarts: int = Field(
        5,
        ge=0,
        le=1000,
        description="under `progress`: restarts of a job before its protection doubles",
    )
    preempt_price: float = Field(
        1.0,
        ge=0,
        le=1000,
        description="under `progress`: weight of the cost of a preemption by rank against what is "
        "left of its victim, growing as the loss budget is spent; 0: none",
    )
    assumed_restart_s: float = Field(
        60.0,
        ge=0,
        le=1e6,
        description="cluster s that a start on real nodes is assumed to take before its work goes "
        "on, until the job's first report in a start shows it; stops are priced by it",
    )
    loss_share: float = Field(
        0.015,
        ge=0,
        le=1,
        description="under `progress`: share of the GPU time in use that preemptions by rank and "
        "migrations may cost, in steps of 0.0001; 1: any",
    )
    loss_window_s: float = Field(
        86400.0,
        ge=0,
        le=2592000,
        description="under `progress`: cluster s of all GPUs whose `loss_share` may be spent at "
        "once",
    )
    large_gang_share: float = Field(
        0.25,
        gt=0,
        le=1,
        description="share of the pool's GPUs above which a gang is large; while many gangs are "
        "large none of them is preempted by rank",
    )
    defragment_after_s: float = Field(
        1800.0,
        ge=0,
        le=NEVER_S,
        description="under `ranked`: cluster s that a job runs before defragmentation may "
        "migrate it; 1e9: never",
    )
    reserve_after_s: float | None = Field(
        None,
        ge=0,
        le=1e9,
        description="cluster s of waiting until GPUs are reserved; 1e9: never; absent: 14 days "
        "under `easy` with `guard_predictions`, else never",
    )
    rank_ms: int = Field(
        1000, ge=0, le=60000, description="shortest interval between rankings, wall ms"
    )
    settle_ms: int = Field(
        0, ge=0, le=60000, description="wall ms between a change and its round, for ranks to arrive"
    )
    solver: Solver = Field(
        "cpsat", description="solver of contended rounds; greedy is always the fallback"
    )
    solver_ms: int = Field(
        500,
        ge=1,
        le=60000,
        description="time limit of the solver, wall ms; then greedy's plan is used",
    )
    packing: Packing = Field(
        "best_fit",
        description="GPUs that workers alone, and parts of GPUs, get; `fragments`: where least of "
        "the free GPUs becomes of no use for the needs of the last 2,000 workers (FGD)",
    )
    scheduler: Name | None = Field(
        None,
        description="scheduler that decides order, GPU type, number of GPUs and perhaps nodes of "
        "jobs with whole GPUs (`docs/schedulers.md`); absent: the ranked queue does",
    )
    scheduler_round_s: float = Field(
        360.0,
        ge=1,
        le=86400,
        description="cluster s between two proposals of the scheduler; a tenth of it at least, "
        "where GPUs are free that it gave to no job",
    )
    scheduler_shadow: Name | None = Field(
        None,
        description="scheduler that proposes on the same views without effect; beside the ranked "
        "queue where the pool has no `scheduler`",
    )
    half_life_s: float = Field(
        604800.0, gt=0, le=1e9, description="half-life of past usage in fair share, cluster s"
    )
    tenant_floor: float = Field(
        0.0,
        ge=0,
        le=1,
        description="under `gittins` and `srsf` without a learned policy: part of its fair share "
        "of the GPUs, by weight among the tenants with jobs, that a tenant's best jobs have before "
        "all other jobs of their class; 0: none",
    )
    spot_gpus: float | None = Field(
        None, ge=0, description="static spot quota, GPUs; absent: unlimited"
    )
    tenants: tuple[Name, ...] = Field(
        (), max_length=256, description="tenants that may submit jobs; empty: every tenant"
    )
    gpu_hour_price: float = Field(
        0.0, ge=0, le=1e6, description="money per GPU-hour, for `berth usage`; nothing is refused"
    )
    allow_injection: bool = Field(
        False,
        description="whether administrators may inject faults on its nodes, for drills "
        "(`berth inject`)",
    )
    terminals: bool = Field(
        False,
        description="whether who may cancel a job may also open terminals in its workers "
        "(`berth exec`, `berth shell`)",
    )
    logs_kept_d: float = Field(
        30.0,
        ge=1,
        le=3650,
        description="days for which output of its jobs is kept, each line from its printing",
    )
    logs_mib: float = Field(
        256.0,
        ge=1,
        le=1e6,
        description="MiB of compressed output that are kept of one job, in blocks of 4 KiB: its "
        "first quarter and its newest lines",
    )
    mitigation: MitigationMode = Field(
        "approve",
        description="`approve`: plans against slow workers wait for an operator; `automatic`: jobs "
        "migrate off slow nodes, which are cordoned, without one; `off`: no plans are made",
    )
    mitigation_share: float = Field(
        0.1,
        ge=0,
        le=1,
        description="share of the pool's nodes that may be cordoned while mitigation cordons "
        "further ones; one of several always may be, 0: none",
    )
    migration_cost_s: float = Field(
        120.0,
        ge=1,
        le=1e6,
        description="cluster s that a migration off a slow node is assumed to cost a job, until "
        "migrations were observed",
    )
    publish_predictions: bool = Field(
        True,
        description="whether priority publishes when waiting jobs are expected to start, and when "
        "its intervals of run times cease to hold; earlier releases cannot read these events, so a "
        "pool that one of them configured has false until it is configured anew",
    )
    rank_changes: bool = Field(
        True,
        description="whether a ranking is recorded as its changes to the one before, in full every "
        "300th time; earlier releases cannot read these events, so a pool that one of them "
        "configured has false until it is configured anew",
    )
    programs_once: bool = Field(
        True,
        description="whether command and env of an array are recorded once, not with each of its "
        "jobs, and all the jobs of an array are bounded in bytes; earlier releases cannot run such "
        "jobs, so a pool that one of them configured has false until it is configured anew",
    )


def default_of(setting: str) -> Any:
    """Return the default of a pool setting. Raises KeyError for an unknown one."""
    return PoolSettings.model_fields[setting].default


LEGACY_DEFAULTS: Final[Mapping[str, Any]] = {
    "large_gang_share": 1.0,
    "defragment_after_s": NEVER_S,
    "solver": "greedy",
    "preemption_protection": "residency",
    "publish_predictions": False,
    "easy_runtime": "user",
    "guard_predictions": False,
    "use_progress": False,
    "rank_changes": False,
    "programs_once": False,
    "mitigation": "off",
    "assumed_restart_s": 0.0,
}
"""Values of settings that an event lacks, where they are not the declared default: what pools did
before the setting existed. If a declared default changes, its old value is added."""


def reserve_wait_s(
    reserve_after_s: float | None, is_guarded: bool, mode: QueueMode, runtime: EasyRuntime
) -> float | None:
    """Return the wait, in cluster s, after which GPUs are reserved for a job; None: never."""
    if reserve_after_s is None and is_guarded and (mode, runtime) == ("easy", "history"):
        return PREDICTED_WAIT_S
    return reserve_after_s


def recorded(setting: str, description: str | None = None) -> Any:
    """Return the field of an event for a setting, without bounds: old values stay readable."""
    declared = PoolSettings.model_fields[setting]
    default = LEGACY_DEFAULTS.get(setting, declared.default)
    return Field(default, description=description or declared.description)


@command
class ConfigurePool(PoolSettings):
    """Create a pool or change its settings; its lane is assigned once and never changes."""

    TYPE: ClassVar[str] = "pool.configure.v1"
    if_version: str | None = Field(
        None,
        pattern=VERSION,
        description=f"version of the settings that this is based on, `{ABSENT}` for a new pool; "
        "refused if the pool has another; absent: no condition",
    )


@command
class DeletePool(Command):
    """Delete a pool that no tenant, key or node names; its lane stays that of its name."""

    TYPE: ClassVar[str] = "pool.delete.v1"
    OWNER: ClassVar[str] = "access"
    pool: Name = Field(description="the pool")


@event
class PoolDeleted(Event):
    """A pool was deleted: it takes no submissions until it is configured again."""

    TYPE: ClassVar[str] = "pool.deleted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access", "admission")
    SUBJECT: ClassVar[str] = "pool"
    pool: Name = Field(description="the pool")
    partition: int = Field(ge=0, description="lane of the pool, which its name keeps")


@event
class PoolConfigured(Event):
    """A pool was configured; each decider repeats the event in its own ledger."""

    TYPE: ClassVar[str] = "pool.configured.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = (
        "access",
        "admission",
        "priority",
        "placement",
        "failslow",
    )
    SUBJECT: ClassVar[str] = "pool"
    partition: int = Field(ge=0, description="lane of the pool")
    pool: Name = Field(description="the pool")
    time_scale: float = recorded("time_scale", "cluster seconds per wall second")
    backends: tuple[Backend, ...] = recorded("backends", "backends its nodes may use")
    lease_s: float = recorded("lease_s")
    stop_after_s: float | Literal["keep"] = recorded("stop_after_s")
    heartbeat_s: float = recorded("heartbeat_s")
    request_timeout_s: float = recorded("request_timeout_s")
    reconnect_s: float = recorded("reconnect_s")
    suspect_after_s: float = recorded("suspect_after_s")
    kill_s: float = recorded("kill_s")
    clock_rate_bound: float = recorded("clock_rate_bound")
    slack_s: float = recorded("slack_s")
    round_ms: int = recorded("round_ms")
    start_timeout_s: float = recorded(
        "start_timeout_s", "wall s from JobPlaced until all are ready"
    )
    base_policy: BasePolicy = recorded("base_policy")
    learned: str | None = recorded("learned", "learned policy that re-ranks the base policy")
    runtime: RuntimeSource = recorded("runtime", "source of run times")
    shadows: tuple[str, ...] = recorded("shadows", "policies that rank without effect")
    queue_mode: QueueMode = recorded("queue_mode", "treatment of jobs behind one that does not fit")
    easy_runtime: EasyRuntime = recorded("easy_runtime", "run times by which EASY backfills")
    guard_predictions: bool = recorded("guard_predictions")
    use_progress: bool = recorded("use_progress")
    preemption: Preemption = recorded("preemption", "by class alone, or also by rank")
    min_residency_s: float = recorded("min_residency_s", "cluster s before a preemption by rank")
    preempt_margin: float = recorded("preempt_margin")
    preemption_protection: PreemptionProtection = recorded("preemption_protection")
    checkpoint_window_s: float = recorded("checkpoint_window_s")
    start_protection_s: float = recorded("start_protection_s")
    cheap_restarts: int = recorded("cheap_restarts")
    preempt_price: float = recorded("preempt_price")
    assumed_restart_s: float = recorded("assumed_restart_s")
    loss_share: float = recorded("loss_share")
    loss_window_s: float = recorded("loss_window_s")
    large_gang_share: float = recorded(
        "large_gang_share", "share of the pool above which a gang is large"
    )
    defragment_after_s: float = recorded(
        "defragment_after_s", "cluster s until defragmentation may migrate a job"
    )
    reserve_after_s: float | None = recorded("reserve_after_s", "cluster s until GPUs are reserved")
    rank_ms: int = recorded("rank_ms")
    settle_ms: int = recorded("settle_ms", "wall ms between a change and its round")
    solver: Solver = recorded("solver", "solver of contended rounds")
    solver_ms: int = recorded("solver_ms", "time limit of the solver, wall ms")
    packing: Packing = recorded("packing", "GPUs that workers alone and parts of GPUs get")
    scheduler: str | None = recorded("scheduler", "scheduler of types and numbers of GPUs")
    scheduler_round_s: float = recorded("scheduler_round_s", "cluster s between its proposals")
    scheduler_shadow: str | None = recorded("scheduler_shadow", "scheduler without effect")
    half_life_s: float = recorded("half_life_s", "half-life of past usage, cluster s")
    tenant_floor: float = recorded("tenant_floor")
    spot_gpus: float | None = recorded("spot_gpus", "static spot quota, GPUs")
    tenants: tuple[str, ...] = recorded("tenants")
    gpu_hour_price: float = recorded("gpu_hour_price", "money per GPU-hour")
    allow_injection: bool = recorded("allow_injection")
    terminals: bool = recorded("terminals")
    logs_kept_d: float = recorded("logs_kept_d")
    logs_mib: float = recorded("logs_mib")
    mitigation: MitigationMode = recorded("mitigation", "who applies plans against slow workers")
    mitigation_share: float = recorded("mitigation_share")
    migration_cost_s: float = recorded("migration_cost_s")
    publish_predictions: bool = recorded(
        "publish_predictions", "whether priority publishes starts it expects, and drift"
    )
    rank_changes: bool = recorded("rank_changes", "whether rankings are recorded as changes")
    programs_once: bool = recorded(
        "programs_once", "whether the program of an array is recorded once"
    )
    reason: str = Field("", description="why the last change was made, as its command says")
    release: int = Field(
        0, ge=0, description="release to which its upgrade is finished; 0: none that says so"
    )

    @property
    def reserve_wait_s(self) -> float | None:
        """The wait, in cluster s, after which GPUs are reserved for a job; None: never."""
        return reserve_wait_s(
            self.reserve_after_s, self.guard_predictions, self.queue_mode, self.easy_runtime
        )

    @property
    def guards_estimates(self) -> bool:
        """Return whether EASY's estimates are at least the longest run so far of similar jobs."""
        by_history = (self.queue_mode, self.easy_runtime) == ("easy", "history")
        return self.guard_predictions and by_history

    def is_open_to(self, tenant: str) -> bool:
        """Return whether the tenant may submit jobs to the pool."""
        return not self.tenants or tenant in self.tenants
