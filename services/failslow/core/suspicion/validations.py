"""Validations of nodes: collects what their workers measure, and names what deviates.

The collected measurements are soft, as all telemetry is. A validation is judged once its job has
ended: until then a lost report is repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

from services.failslow.core.diagnosis.layout import Group
from services.failslow.core.diagnosis.validation import Pair, rounds_for
from services.failslow.core.diagnosis.verdict import UNKNOWN, Diagnosis, Suspect, diagnose
from services.failslow.core.fold_mitigation import well_after_faults
from services.failslow.core.gangs import times_of_workers
from services.failslow.core.measures.contention import CALM
from services.failslow.core.plans.after_validation import follow_verdict
from services.failslow.core.state import FailSlowState, GangState
from shared.contracts.faults import Cause
from shared.contracts.reports import TelemetryReported
from shared.contracts.validation import (
    FIRST_GPU,
    FIRST_LINK,
    MEMORY,
    MOST_GPUS,
    MOST_NODES,
    PROCESSOR,
    VALIDATIONS_FROM,
    MeasuredPart,
    NodesValidated,
    ValidationMeasured,
)
from shared.ledger.decider import Decision, Input

SHORTEST_S, LONGEST_S = 1e-9, 1e6
"""Times beyond these are no measurements; ratios of those between them are finite."""
WORDS = {PROCESSOR: "processor", MEMORY: "memory"}
LEAST_COMPARED = 3
LINKS_OF_A_NODE = 2
"""In a ring of three and more nodes."""
BUSY = CALM / (1 - CALM)
"""Wait for a processor beside the work on it, above which a host is busy."""
WAITS = "waited for a processor meanwhile: its host is busy, or limits it"
TOO_FEW = "fewer than three nodes were measured: which of them deviates cannot be known"


@dataclass(slots=True)
class Measuring:
    """One running validation."""

    gang: GangState
    times_s: dict[int, dict[int, float]] = field(default_factory=dict)
    """By rank, s by number of the iteration, without the wait for a processor."""
    waits_s: dict[int, dict[int, float]] = field(default_factory=dict)
    """By rank, s of that wait."""


class Validations:
    """The measurements of running validations."""

    def __init__(self) -> None:
        self._measuring: dict[str, Measuring] = {}

    def add(self, report: TelemetryReported, gangs: Mapping[str, GangState]) -> None:
        """Add a report; one that is read twice changes nothing."""
        for gang, times in times_of_workers(report, gangs):
            if not gang.validates:
                continue
            measuring = self._of(times.job_id, gang)
            own = measuring.times_s.setdefault(times.rank, {})
            waits_s = measuring.waits_s.setdefault(times.rank, {})
            late = times.delay_s or (None,) * len(times.iteration_s)
            for part, whole_s, wait_s in zip(times.steps, times.iteration_s, late, strict=False):
                time_s = whole_s - (wait_s or 0.0)
                if is_part(part, len(gang.workers)) and SHORTEST_S <= time_s <= LONGEST_S:
                    own[part], waits_s[part] = time_s, wait_s or 0.0

    def take_ended(self, state: FailSlowState) -> list[ValidationMeasured]:
        """Return those whose job has ended since the last call."""
        ended = [
            job_id
            for job_id, own in self._measuring.items()
            if job_id not in state.gangs or state.gangs[job_id].attempt != own.gang.attempt
        ]
        return [_message(job_id, self._measuring.pop(job_id)) for job_id in ended]

    def _of(self, job_id: str, gang: GangState) -> Measuring:
        own = self._measuring.get(job_id)
        if own is None:
            own = self._measuring[job_id] = Measuring(gang)
        return own


def is_part(part: int, workers: int) -> bool:
    return (
        part in WORDS
        or FIRST_GPU <= part < FIRST_GPU + MOST_GPUS
        or FIRST_LINK <= part < FIRST_LINK + min(workers, MOST_NODES)
    )


def _message(job_id: str, own: Measuring) -> ValidationMeasured:
    ranks = sorted(own.gang.workers)
    return ValidationMeasured(
        job_id=job_id,
        tenant=own.gang.tenant,
        attempt=own.gang.attempt,
        traceparent=own.gang.traceparent,
        node_ids=tuple(own.gang.workers[rank].node_id for rank in ranks),
        times_s=tuple(own.times_s.get(rank, {}) for rank in ranks),
        waits_s=tuple(own.waits_s.get(rank, {}) for rank in ranks),
    )


def note_validation(
    state: FailSlowState, item: Input, measured: ValidationMeasured, now: int
) -> Iterator[Decision]:
    """Record what was measured, the part that deviates, and what follows from it."""
    if state.pool is None or state.pool.release < VALIDATIONS_FROM:
        return
    nodes, parts = measured.node_ids, tuple(_parts(measured))
    worst = judge(measured)
    suspect = worst.suspects[0] if worst.suspects else None
    event = NodesValidated(
        job_id=measured.job_id,
        tenant=measured.tenant,
        attempt=measured.attempt,
        node_ids=nodes,
        silent_node_ids=tuple(
            node_id for node_id, own in zip(nodes, measured.times_s, strict=True) if not own
        ),
        rounds=rounds_of(measured),
        cause=worst.cause,
        part=suspect.kind if suspect else "",
        suspect_node_ids=suspect.node_ids if suspect else (),
        confidence=worst.confidence,
        evidence=evidence_of(measured, worst),
        measured=parts,
    )
    own, well = state.validations.get(measured.job_id), well_after_faults(state, event)
    yield Decision(event, item.id, measured.traceparent)
    yield from follow_verdict(state, event, own, well, now)


def rounds_of(measured: ValidationMeasured) -> int:
    """Return how many rounds of transfers around the ring were measured."""
    rounds = rounds_for([Group("dp", 0, tuple(range(len(measured.node_ids))))])
    links = links_of(measured)
    return sum(any(pair in links for pair in one.pairs) for one in rounds)


def judge(measured: ValidationMeasured) -> Diagnosis:
    """Return the cause: by GPUs, else by processors and memory, else by links.

    Slow processors delay GPUs and links, and slow GPUs are the more precise answer. A host that is
    busy with other work is no slow processor, and is named where the other hosts are calm.
    """
    nodes = dict(enumerate(measured.node_ids))
    gpus = [
        (rank, part) for rank, own in enumerate(measured.times_s) for part in own if is_gpu(part)
    ]
    processors = _by_part(measured, PROCESSOR, nodes)
    slow_nodes = {node_id for suspect in processors.suspects for node_id in suspect.node_ids}
    by_gpu = {number: measured.times_s[rank][part] for number, (rank, part) in enumerate(gpus)}
    of_gpu = {number: nodes[rank] for number, (rank, _) in enumerate(gpus)}
    verdicts = (
        _as_nodes(diagnose(by_gpu, {}, of_gpu), slow_nodes),
        processors,
        _by_part(measured, MEMORY, nodes),
        _busy_node(measured, nodes),
    )
    deviating = next((verdict for verdict in verdicts if verdict.suspects), None)
    return deviating or _common_end(diagnose({}, {"dp": links_of(measured)}, nodes))


def _by_part(measured: ValidationMeasured, part: int, nodes: Mapping[int, str]) -> Diagnosis:
    """Return the verdict by a part that each node has once: what is slow is the node."""
    times_s = {rank: own[part] for rank, own in enumerate(measured.times_s) if part in own}
    return _as_nodes(diagnose(times_s, {}, nodes), frozenset(nodes.values()))


def _busy_node(measured: ValidationMeasured, nodes: Mapping[int, str]) -> Diagnosis:
    """Return the verdict by the computation on a processor with the wait for one."""
    own_s = {rank: own[PROCESSOR] for rank, own in enumerate(measured.times_s) if PROCESSOR in own}
    waits_s = {rank: own.get(PROCESSOR, 0.0) for rank, own in enumerate(measured.waits_s)}
    whole_s = {rank: time_s + waits_s.get(rank, 0.0) for rank, time_s in own_s.items()}
    verdict = _as_nodes(diagnose(whole_s, {}, nodes), frozenset(nodes.values()))
    suspects = {node_id for suspect in verdict.suspects for node_id in suspect.node_ids}
    return verdict if suspects == set(busy_nodes(measured, nodes.values())) else UNKNOWN


def busy_nodes(measured: ValidationMeasured, named: Collection[str]) -> list[str]:
    """Return those of the named nodes that were busy while their processors were measured."""
    return [
        node_id
        for node_id, own, waits in zip(
            measured.node_ids, measured.times_s, measured.waits_s, strict=False
        )
        if node_id in named and waits.get(PROCESSOR, 0.0) > BUSY * own.get(PROCESSOR, 0.0)
    ]


def _as_nodes(verdict: Diagnosis, slow_nodes: Collection[str]) -> Diagnosis:
    """Name the node in place of its GPU where the node is slow itself."""
    suspects = tuple(
        replace(suspect, kind="node") if suspect.node_ids[0] in slow_nodes else suspect
        for suspect in verdict.suspects
    )
    return replace(verdict, suspects=suspects)


def _common_end(verdict: Diagnosis) -> Diagnosis:
    """Name the node in place of its links where both of them are slow, and no others."""
    if len(verdict.suspects) != LINKS_OF_A_NODE:
        return verdict
    worst, other = verdict.suspects
    common = tuple(node_id for node_id in worst.node_ids if node_id in other.node_ids)
    if len(common) != 1:
        return verdict
    return replace(verdict, suspects=(replace(worst, kind="node", node_ids=common), worst, other))


def links_of(measured: ValidationMeasured) -> dict[Pair, float]:
    """Return the transfers between pairs of ranks, s."""
    return {
        (rank, part - FIRST_LINK): time_s
        for rank, own in enumerate(measured.times_s)
        for part, time_s in own.items()
        if part >= FIRST_LINK
    }


def is_gpu(part: int) -> bool:
    return FIRST_GPU <= part < FIRST_GPU + MOST_GPUS


def evidence_of(measured: ValidationMeasured, verdict: Diagnosis) -> tuple[str, ...]:
    """Return the sentences of the verdict with the names of nodes, or why there is none."""
    if not verdict.suspects:
        is_enough = sum(map(bool, measured.times_s)) >= LEAST_COMPARED
        return verdict.evidence if is_enough else (TOO_FEW,)
    sentences = [_sentence(verdict.cause, suspect) for suspect in verdict.suspects]
    named = {node_id for suspect in verdict.suspects for node_id in suspect.node_ids}
    return (*sentences, *(f"{node_id} {WAITS}" for node_id in busy_nodes(measured, named)))


def _sentence(cause: Cause, suspect: Suspect) -> str:
    kind = "links" if cause == "communication" and suspect.kind == "node" else suspect.kind
    return (
        f"{kind} of {' and '.join(suspect.node_ids)}: {suspect.slower:.2f} times the median of its"
        f" peers, {suspect.score:.1f} deviations"
    )


def _parts(measured: ValidationMeasured) -> Iterator[MeasuredPart]:
    """Yield all measurements, each beside those of the same kind."""
    by_kind: dict[str, list[float]] = {}
    for own in measured.times_s:
        for part, time_s in own.items():
            by_kind.setdefault(_kind(part), []).append(time_s)
    usual_s = {kind: median(times_s) for kind, times_s in by_kind.items()}
    for rank, own in enumerate(measured.times_s):
        for part, time_s in sorted(own.items()):
            yield MeasuredPart(
                part=_name(part, measured.node_ids),
                node_id=measured.node_ids[rank],
                seconds=time_s,
                ratio=time_s / usual_s[_kind(part)],
            )


def _kind(part: int) -> str:
    return WORDS.get(part) or ("gpu" if is_gpu(part) else "link")


def _name(part: int, nodes: tuple[str, ...]) -> str:
    if is_gpu(part):
        return f"gpu {part - FIRST_GPU}"
    return WORDS.get(part) or f"link to {nodes[part - FIRST_LINK]}"
