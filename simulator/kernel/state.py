"""The state of a run: one record per job, node counts, lists of jobs by their number.

Compiled functions take `Sim`, or the records and arrays of it that they need. Records are numpy's:
a job's fields are adjacent, and a function that is given a record changes it in place. The
protocols repeat the dtypes for readers and the type checker. Times are ms of one clock if the name
says so, else cluster seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


class PackedRules(Protocol):
    """Settings of a run as compiled functions read them; see `run.Rules`."""

    policy: int
    base: int
    """Policy that a learned one re-ranks."""
    band: float
    """Score within which the learned policy leaves the order to its base; 0: none."""
    deviation: float
    """Standard deviation of what exploration adds to scores of a network; 0: it adds nothing."""
    queue_mode: int
    by_history: bool
    easy_by_history: bool
    """Whether EASY reserves and backfills by predicted run times."""
    guards: bool
    """Whether failures at once teach no run time, and reservations keep to their nodes."""
    guards_estimates: bool
    """Whether EASY's estimates are at least the longest run of similar jobs."""
    reserve_after_ms: int
    """Wait after which GPUs are reserved for the overdue job; NEVER: none are."""
    least_hold_ms: int
    """Time that a reservation for it lasts at least."""
    has_distributions: bool
    """Whether each job has a distribution of run times."""
    preempts_by_rank: bool
    preempt_margin: float
    min_residency_ms: int
    defragment_after_ms: int
    """Run time before a migration; NEVER: no migrations."""
    large_gang_share: float
    refresh_ms: int
    stop_cost_ms: int
    """Work that a stop loses which writes a checkpoint; 0: a stop writes none."""
    progress: bool
    """Whether `progress` protects jobs, instead of their residency alone."""
    start_protection_ms: int
    cheap_restarts: int
    preempt_price: float
    loss_share: int
    """In 1 / `loss_budget.SHARES`."""
    tenant_floor: float
    """Part of its fair share of the GPUs that a tenant is entitled to; 0: none."""
    loss_budget: int
    """In the units of `loss_budget`."""
    from_ms: int
    to_ms: int
    epoch_ms: int
    """Submission of the first job."""
    capacity: float
    """GPUs of the pool."""


class PoolState(Protocol):
    """Counters and due times of the pool."""

    clock_ms: int
    ranked_at_ms: int
    first_change_ms: int
    round_at_ms: int
    """Time of the next round."""
    again_at_ms: int
    """Time of the round that the last one requested: the end of a residency."""
    context_at_ms: int
    overdue: int
    """Job for which GPUs are reserved because it waited too long, under `guards`; -1: none."""
    overdue_from_ms: int
    """Time of the first round that reserved them."""
    lapsed_from_ms: int
    """The same of the last reservation that lapsed; -1: none did."""
    unreserved_until_ms: int
    """Time until which none are reserved, after that lapse."""
    tenants: int
    """Tenants with jobs that wait or run."""
    entitled: int
    ahead: int
    arrived: int
    """Jobs that arrived, which is the number of the next one."""
    done: int
    waiting: int
    waiting_shapes: int
    running: int
    oldest_ms: int
    """No waiting job waits since an earlier time."""
    reservations: int
    spare_allocation: int
    """First unused allocation; -1: none."""
    used: float
    """GPUs in use."""
    hour: int
    """Hour of the window in which the clock is."""
    hour_ends_ms: int
    loss_spent: int
    """Cost of stops that is not earned back, in the units of `loss_budget`."""
    large: float
    """Share of recent arrivals that are large gangs."""
    rounds: int
    scored: int
    """Scores to which exploration has added."""
    preemptions: int
    """Stops by rank and by migration."""
    migrations: int
    migrating: int
    """Jobs that migrated in the last round."""


class ScanState(Protocol):
    """Counters and marks of one queue scan."""

    open_shapes: int
    """Shapes of waiting jobs that may still start or find victims."""
    started: int
    has_reservations: bool
    """Whether any job is out of turn; else `round_queue` is `queue`."""
    reserved: int
    evictions: int
    """Searches that found victims."""
    searches: int
    defragmentations: int
    """Jobs for which others migrate."""
    defragmentation_tries: int
    migrated: int
    """Migrated jobs among the started ones (rule 13)."""
    evicted: int
    victims: int
    protected: int
    bar: float
    """Score that the listed victims are below; -inf: none are listed."""
    unmarked: bool
    """Whether no shape has a mark of this round."""
    unfinished: bool
    head: bool
    """Whether EASY has a head already."""
    noted_longest: bool
    """Whether the longest runs of this round are noted."""
    shadow_ms: int
    overdue: int
    """Job that waited too long; -1: none."""
    overdue_index: int
    """Its index in `round_queue`."""
    again_ms: int
    """Earliest end of protection of a job that a waiting one leads, or lapse of a reservation."""


class JobRow(Protocol):
    """One job, by the number of its submission; first what every run uses of each."""

    kind: int
    """Number of its shape."""
    state: int
    key: float
    """Queue key; a lower one goes first."""
    seniority: int
    """Position by (submitted_at, job id), which decides between equal keys (rule 3)."""
    workers: int
    gpus: int
    """Per worker."""
    gang: float
    """GPUs of all workers."""
    submit_ms: int
    duration_ms: int
    since_ms: int
    """Since when it waits."""
    reservation_round: int
    """Round in which it stopped others; 0: it has no reservation (rule 10)."""
    starts: int
    checkpointed_ms: int
    """Work in its last checkpoint."""
    paid_ms: int
    """Restart cost of this start."""
    started_ms: int
    walltime_ms: int
    """Run time by which EASY reserves and backfills."""
    tie: int
    """Position by job id alone (rules 6 and 9)."""
    running_at: int
    """Index among the running."""
    heap_index: int
    """Index among the ends."""
    first_allocation: int
    """First allocation of its chain."""
    first_start_ms: int
    ends_ms: int
    held_ms: int
    lost_ms: int
    checkpoint_ms: int
    """Work between its checkpoints; 0: it makes none."""
    window_ms: int
    """Work after a checkpoint within which rank stops it."""
    restart_ms: int
    """Cost of a start after a stop."""
    unreserved_until_ms: int
    """Time until which no GPUs are reserved for its long wait, after a lapse."""
    longest_ms: int
    """Longest run of its attempts that were stopped."""
    run_s: float
    """Expected run time by the configured source."""
    spread: float
    """This and the logarithms that follow are features of a network."""
    ln_gpus: float
    ln_share: float
    evicted: int
    """Last round that stopped it."""
    debt_ms: int
    """Rule 7."""
    entitled: bool
    """Whether it goes before all that are not, see `entitlement.py`."""
    fixed: bool
    """Whether rank neither stops nor migrates it."""
    failed: bool
    """Whether its program fails at the end."""


class ForecastRow(Protocol):
    """Remaining time of a job with that attained service; see `forecast.py`."""

    bin_number: int
    """Bin of the attained service, from 1, for which all is computed; 0: none."""
    left_number: int
    """Bin for which `left_s` is computed, likewise."""
    left_s: float
    gittins_s: float
    ln_gittins: float
    """This and the following are features of the network."""
    ln_left: float
    ln_attained: float


class RunningRow(Protocol):
    """Fields of a running job that a search reads; rows are adjacent, jobs far apart."""

    job: int
    key: float
    """Valid until `until_ms`."""
    until_ms: int
    started_ms: int
    safe_ms: int
    """Time before which rank does not stop it; from NEVER on: it never does."""
    migratable_ms: int
    """Time before which it does not migrate."""
    tie: int
    """As in `JobRow`."""
    expected_end_ms: int
    """End that EASY expects of it, while that is to come."""


class ShapeRow(Protocol):
    """Equivalence class of the jobs with the same workers and GPUs; marks are of one round."""

    waiting: int
    no_room: bool
    """Whether it found no room."""
    no_victims: bool
    """Whether it need not search for victims."""
    no_migrations: bool
    """Whether it need not search for migrations."""


class EndRow(Protocol):
    at_ms: int
    job: int


class AllocationRow(Protocol):
    """GPUs of one node; `next` is another allocation of the same job, -1 at the last."""

    node: int
    gpus: int
    bits: int
    """The GPUs, one bit each."""
    next: int


class VictimRow(Protocol):
    job: int
    score: float


class NodeRow(Protocol):
    """A node in the search for migrations, and in the choice of those to reserve."""

    gpus: int
    """In use by running jobs."""
    count: int
    first: int
    """Index in `running` of one of its movable jobs; -1: none."""
    fixed: bool
    """Whether a job has to stay there or migrates there: it is not emptied."""
    emptied: bool
    late: int
    """GPUs of jobs started since GPUs are reserved for the overdue job."""
    outlasting: int
    """GPUs of jobs that outlasted the last reservation that lapsed."""


class ProtectedRow(Protocol):
    """A job that may not be stopped before `until_ms`."""

    score: float
    until_ms: int


class SortRow(Protocol):
    """A table to sort by: `order` [n] are row numbers, `spare` is scratch space."""

    value: float
    tie: int
    order: int
    spare: int


Jobs: TypeAlias = Sequence[JobRow]
Ends: TypeAlias = Sequence[EndRow]
Allocations: TypeAlias = Sequence[AllocationRow]
Sorting: TypeAlias = Sequence[SortRow]


class Sim(NamedTuple):
    """`n` jobs, `m` nodes, `g` GPUs, `r` = the most jobs that can run at once."""

    rules: PackedRules
    pool: PoolState
    scan: ScanState
    jobs: Jobs
    kinds: Ints
    """[n] the shape of each job, as `JobRow.kind`: a queue scan reads it for every job."""
    queue: Ints
    """[n] the waiting jobs, in order unless keys change with the wait."""
    round_queue: Ints
    """[n] the order of this round, where it is not that of `queue`."""
    started_positions: Ints
    """[r] positions in the order of this round of the jobs that it started."""
    running: Sequence[RunningRow]
    """[r] in no order."""
    ends: Ends
    """[r] a heap."""
    shapes: Sequence[ShapeRow]
    costlier: Bools
    """[S, S] whether shape b needs at least as much as shape a."""
    sizes: Ints
    """[m] GPUs."""
    free: Ints
    """[m] free GPUs."""
    bits: Ints
    """[m] the free GPUs, one bit each."""
    levels: Ints
    """[most GPUs of a node + 1] nodes with so many free GPUs."""
    off_free: Ints
    """[m] `free` without the nodes of EASY's head, which have -1."""
    off_levels: Ints
    allocations: Allocations
    """[g] of the running jobs."""
    placed: Allocations
    """[m] nodes of the last gang placed."""
    reserved: Allocations
    """GPUs that this round reserves for jobs that stop others."""
    victims: Sequence[VictimRow]
    """[r] jobs that may be stopped in this round, lowest score first."""
    protected: Sequence[ProtectedRow]
    chosen: Ints
    """[r] victims, by index in `victims`, whose GPUs a search tries."""
    leaving: Ints
    """[r] jobs that stop for the current one."""
    evicted: Ints
    """[r] jobs that this round stops."""
    targets: Allocations
    """Allocations of the migrating jobs; `next` is the job."""
    node_rows: Sequence[NodeRow]
    """[m]"""
    neighbours: Ints
    """[r] next running job of the same node, by index in `running`; -1: the last."""
    sorting: Sorting
    tenants: Ints
    """[n] code of each job's tenant, from 0."""
    present: Ints
    """[tenants] jobs of each that wait or run."""
    taken: Floats
    """[tenants] GPUs of the entitled jobs of each."""
    left: Ints
    """[tenants] jobs of each that may yet be entitled."""
    entitled: Ints
    """[n] the entitled jobs; those that wait, as indices of the queue, are in `ahead`."""
    ahead: Ints
    held: Floats
    """[hours of the window] GPU-ms in use."""
    lost: Floats
    """[hours of the window] GPU-ms of attempts that ended in the hour which kept no work."""
    longest_ms: Ints
    """[groups] longest run so far of the running jobs of a name."""
    longest_round: Ints
    """[groups] round for which that holds."""
    groups: Ints
    """[n, LEVELS] of `history.groups`, -1 for none."""
    counts: Floats
    """[groups, BINS] run times in history."""
    distributions: Floats
    """[n + 1, BINS] each job's run-time distribution, then the prior; the prior alone without
    history."""
    forecasts: Sequence[ForecastRow]
    """[n]"""
    theta: Floats
    hidden: Floats
    """[1 + H] the context's part of each score and of each hidden unit."""
    context: Floats
    """[4] the features of the pool."""
    decisions: Floats
    """[most scores, COLUMNS] of `exploration`; none without exploration."""


@cache
def dtype(record: type) -> np.dtype[np.void]:
    """Return numpy's type of a record, from its protocol; the same one at each call, for numba."""
    kinds = {"int": np.int64, "float": np.float64, "bool": np.bool_}
    fields = record.__annotations__.items()
    plain = np.dtype([(name, kinds[kind]) for name, kind in fields], align=True)
    return np.dtype((np.record, plain))


def table(record: type, rows: int) -> Any:
    """Return zeros, [rows]; fields are attributes, for Python as for compiled code."""
    return np.zeros(rows, dtype(record)).view(np.recarray)
