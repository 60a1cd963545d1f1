"""The state of a run: one record per job, node counts, lists of jobs by their number.

Compiled functions take `Sim`, or the records and arrays of it that they need. Records are numpy's:
a job's fields lie beside each other, and a function that is given a record changes it in place.
The protocols say the same as the dtypes, to whoever reads or checks types. Times are ms of one
clock if the name says so, else cluster seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


class Rules(Protocol):
    """What does not change in a run; see `run.Rules`."""

    policy: int
    base: int
    """The policy that a learned one re-ranks."""
    band: float
    """Score within which the learned one leaves the order to its base; 0: never."""
    mode: int
    by_history: bool
    knows: bool
    """Does each job have a distribution of run times?"""
    ranked: bool
    margin: float
    residency_ms: int
    move_after_ms: int
    """NEVER: no job moves for another."""
    large_share: float
    refresh_ms: int
    restart_ms: int
    checkpoint_ms: int
    from_ms: int
    to_ms: int
    epoch_ms: int
    """When the first job came."""
    capacity: float
    """GPUs of the pool."""


class Pool(Protocol):
    """What the run is at."""

    clock_ms: int
    ranked_at_ms: int
    first_change_ms: int
    round_at_ms: int
    """When the next round is due."""
    again_at_ms: int
    """When a round asked for another: the next residency that is over."""
    context_at_ms: int
    arrived: int
    """Jobs that came; the next one is that number."""
    done: int
    waiting: int
    waiting_shapes: int
    running: int
    claims: int
    spare_span: int
    """The first unused span; -1: none."""
    used: float
    """GPUs in use."""
    busy: float
    """GPU-ms used within the window."""
    large: float
    """Share of recent arrivals that are large gangs."""
    rounds: int
    preemptions: int
    """Moves among them."""
    moves: int
    landing: int
    """Jobs that moved in the last round."""


class Walk(Protocol):
    """One round's walk down the line."""

    open_shapes: int
    """Shapes somebody waits with that still may start or look for victims."""
    started: int
    claimed: bool
    """Was somebody out of turn? Else `line` is `queue`."""
    kept: int
    evictions: int
    """Searches that found victims."""
    searches: int
    gathers: int
    """Jobs for which others move."""
    gather_tries: int
    landed: int
    """Of those that started the ones that went on where they were to (rule 13)."""
    evicted: int
    victims: int
    protected: int
    bar: float
    """Score that the listed victims lie below; -inf: none are listed."""
    unfinished: bool
    head: bool
    """EASY: does somebody stand at the head already?"""
    shadow_ms: int
    residency_ms: int
    """When the first protected job that somebody leads is protected no longer."""


class Job(Protocol):
    """One job, by the number of its submission."""

    kind: int
    """The number of its shape."""
    state: int
    key: float
    """Lower goes first."""
    seniority: int
    """Its place by (submitted_at, job id): decides between equal keys (rule 3)."""
    tie: int
    """Its place by job id alone (rules 6 and 9)."""
    workers: int
    gpus: int
    """Per worker."""
    gang: float
    """GPUs of all workers."""
    submit_ms: int
    duration_ms: int
    walltime_ms: int
    run_s: float
    """What the source of run times says."""
    spread: float
    """This and the logarithms that follow are what a network sees of it."""
    ln_gpus: float
    ln_share: float
    claim: int
    """The round in which it made others stop; 0: it claims nothing (rule 10)."""
    evicted: int
    """The round that stopped it last."""
    starts: int
    first_start_ms: int
    started_ms: int
    ends_ms: int
    kept_ms: int
    """Work that is safe in a checkpoint."""
    paid_ms: int
    """Restart cost of this start."""
    debt_ms: int
    """Rule 7."""
    lost_ms: int
    held_ms: int
    running_at: int
    """Its slot among the running."""
    ends_at: int
    """Where it is among the ends."""
    span: int
    """The first of its spans."""


class Outlook(Protocol):
    """What is believed of a job that has attained so much service; see `outlook.py`."""

    bin: int
    """Of that service; -1: nobody looked."""
    gittins_s: float
    left_s: float
    ln_gittins: float
    """Of these what the network sees."""
    ln_left: float
    ln_attained: float


class Slot(Protocol):
    """What a search asks of a running job; slots lie beside each other, jobs far apart."""

    job: int
    key: float
    """Good until `until_ms`."""
    until_ms: int
    started_ms: int
    safe_ms: int
    """Rank does not stop it before."""
    moves_ms: int
    """Nor does it move for another before."""


class Shape(Protocol):
    """Jobs of the same workers and GPUs."""

    waiting: int
    failed: bool
    """Found no room in this round."""
    hopeless: bool
    """Need not look for victims in this round."""
    scattered: bool
    """Need not look for others that move in this round."""


class End(Protocol):
    at_ms: int
    job: int


class Span(Protocol):
    """GPUs of one node; `next` is another span of the same job, -1 at the last."""

    node: int
    gpus: int
    bits: int
    """Which ones: a bit each."""
    next: int


class Victim(Protocol):
    job: int
    score: float


class Home(Protocol):
    """A node, as those see it that look for others to move."""

    gpus: int
    """In use by running jobs."""
    count: int
    first: int
    """Place in `running` of one of those that would have to leave it; -1: there is none."""
    fixed: bool
    """Somebody there has to stay, or others move here: it is not emptied."""
    emptied: bool


class Protected(Protocol):
    """Somebody who may not be stopped before then."""

    score: float
    until_ms: int


class Sorted(Protocol):
    """A table to sort by: `order` [n] are row numbers, `spare` is room."""

    value: float
    tie: int
    order: int
    spare: int


Jobs: TypeAlias = Sequence[Job]
Ends: TypeAlias = Sequence[End]
Spans: TypeAlias = Sequence[Span]
Sorting: TypeAlias = Sequence[Sorted]


class Sim(NamedTuple):
    """`n` jobs, `m` nodes, `g` GPUs, `r` = the most jobs that can run at once."""

    rules: Rules
    pool: Pool
    walk: Walk
    jobs: Jobs
    kinds: Ints
    """[n] the shape of each job, see `Job.kind`: a walk asks everybody for it."""
    queue: Ints
    """[n] the waiting, in order unless keys change with the wait."""
    line: Ints
    """[n] this round's order."""
    gone: Ints
    """[r] places in `line` of those that this round started."""
    running: Sequence[Slot]
    """[r] in no order."""
    ends: Ends
    """[r] a heap."""
    shapes: Sequence[Shape]
    dearer: Bools
    """[S, S]: does shape b need at least what shape a needs?"""
    sizes: Ints
    """[m] GPUs."""
    free: Ints
    """[m] free GPUs."""
    bits: Ints
    """[m] which GPUs these are, a bit each."""
    levels: Ints
    """[most GPUs of a node + 1]: nodes with so many free GPUs."""
    off_free: Ints
    """[m] the same without the nodes of EASY's head, which have -1."""
    off_levels: Ints
    spans: Spans
    """[g] of the running."""
    placed: Spans
    """[m] where the last gang was placed."""
    kept: Spans
    """What this round keeps for those who stop others."""
    victims: Sequence[Victim]
    """[r] who may be stopped in this round, lowest score first."""
    protected: Sequence[Protected]
    chosen: Ints
    """[r] victims, by their place in `victims`, whose GPUs a search tries."""
    leaving: Ints
    """[r] jobs that stop for the one at hand."""
    evicted: Ints
    """[r] jobs that this round stops."""
    landings: Spans
    """Where those go on that move; `next` is the job."""
    homes: Sequence[Home]
    """[m]"""
    neighbours: Ints
    """[r] the next running job of the same node, by its place in `running`; -1: the last."""
    sorting: Sorting
    groups: Ints
    """[n, LEVELS] of `history.groups`, -1 for none."""
    counts: Floats
    """[groups, BINS] what history has seen."""
    chances: Floats
    """[n, BINS] each job's run time, as history sees it; one row if nobody asks."""
    outlooks: Sequence[Outlook]
    """[n]"""
    theta: Floats
    hidden: Floats
    """[1 + H] what the pool's context adds to each score and to each hidden unit."""


def dtype(record: type) -> np.dtype[np.void]:
    """Numpy's type of a record, from its protocol."""
    kinds = {"int": np.int64, "float": np.float64, "bool": np.bool_}
    fields = record.__annotations__.items()
    return np.dtype([(name, kinds[kind]) for name, kind in fields], align=True)


def table(record: type, rows: int) -> Any:
    """Zeros, [rows]; fields are attributes, for Python as for compiled code."""
    return np.zeros(rows, dtype(record)).view(np.recarray)
