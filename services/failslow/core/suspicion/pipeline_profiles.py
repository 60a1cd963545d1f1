"""The stages of the watched jobs' pipelines: pure, disposable, not in the ledger.

A training reports for each process its stage (`pp` of its layout), its micro-batches, the phases
`forward`, `backward` and perhaps `weight`, and as `link.pp` how long a message from the stage
before takes. A stage is as slow as its slowest process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from pydantic import ValidationError

from services.failslow.core.diagnosis.worker import known
from services.failslow.core.gangs import times_of_workers
from services.failslow.core.measures.own_times import trained
from services.failslow.core.state import FailSlowState, GangState
from services.failslow.core.suspicion.attempts import OfAttempts
from services.failslow.core.suspicion.evidence import MOST_PROCESSES
from shared.contracts.paces import JobPaceChanged
from shared.contracts.parallelism import MOST_MICROBATCHES, MOST_STAGES, PipelineProfile
from shared.contracts.reports import IterationTimes, TelemetryReported

AXIS = "pp"
FORWARD, BACKWARD, WEIGHT, LINK = "forward", "backward", "weight", "link.pp"
REMEMBERED = 32
MOST_PLACES = 4096
"""Stages of workers of one job; a program names them itself. Of one worker there are at most as
many as it has processes that are followed."""


@dataclass(frozen=True, slots=True)
class StageSample:
    """Medians of one report, s of an iteration; `link_s` is of one message."""

    step: int
    forward_s: float
    backward_s: float
    weight_s: float
    link_s: float


@dataclass(slots=True)
class StageTimes:
    """The newest reports of a worker about a stage."""

    microbatches: int
    activations: int | None
    samples: deque[StageSample] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


Place = tuple[int, int]
"""Stage, and rank of the worker."""


Places = dict[Place, StageTimes]


class PipelineProfiles:
    """By job and place; a shell keeps one per lane."""

    def __init__(self) -> None:
        self._jobs: OfAttempts[Places] = OfAttempts(dict)

    def add(self, report: TelemetryReported, gangs: Mapping[str, GangState]) -> None:
        """Add the reports that name a stage and its times."""
        for gang, times in times_of_workers(report, gangs):
            self._note(gang, times)

    def forget_ended(self, state: FailSlowState) -> None:
        self._jobs.forget_ended(state.gangs)

    def described(self, change: JobPaceChanged) -> JobPaceChanged:
        """Return the change of a job that became slow with its pipeline, as far as it is known."""
        places = self._jobs.of(change.job_id, change.attempt)
        if places is None or not change.is_slow or change.earlier_runs:
            return change
        profile = profile_of(places, change.since_step)
        return change.model_copy(update={"pipeline": profile}) if profile else change

    def _note(self, gang: GangState, times: IterationTimes) -> None:
        stage, count, sample = times.layout.get(AXIS), times.microbatches, sample_of(times)
        is_bounded = stage is not None and stage < MOST_STAGES and (count or 0) > 0
        if stage is None or count is None or sample is None or not is_bounded:
            return
        places, place = self._jobs.begin(times.job_id, gang.attempt), (stage, times.rank)
        if place not in places and not _has_room(places, times.rank):
            return
        own = places.setdefault(place, StageTimes(count, None))
        if own.samples and sample.step <= own.samples[-1].step:
            return
        own.microbatches, own.activations = count, times.activations
        own.samples.append(sample)


def _has_room(places: Mapping[Place, StageTimes], rank: int) -> bool:
    """Return whether one more stage of a worker may be followed."""
    of_worker = sum(other == rank for _, other in places)
    return len(places) < MOST_PLACES and of_worker < MOST_PROCESSES


def sample_of(times: IterationTimes) -> StageSample | None:
    """Return the medians of a report; None where one that is needed is missing."""
    forward_s, backward_s = _phase(times, FORWARD), _phase(times, BACKWARD)
    if not times.steps or forward_s is None or backward_s is None:
        return None
    weight_s, link_s = _phase(times, WEIGHT) or 0.0, _phase(times, LINK) or 0.0
    return StageSample(times.steps[-1], forward_s, backward_s, weight_s, link_s)


def profile_of(places: Mapping[Place, StageTimes], since_step: int) -> PipelineProfile | None:
    """Return the pipeline since a step; None where stages are missing or disagree."""
    stages = len({stage for stage, _ in places})
    counts = {own.microbatches for own in places.values()}
    is_one = {stage for stage, _ in places} == set(range(stages)) and len(counts) == 1
    if stages < 2 or not is_one or max(counts) > MOST_MICROBATCHES:
        return None
    count = counts.pop()
    by_stage = [[own for (at, _), own in places.items() if at == stage] for stage in range(stages)]
    columns = {name: _slowest(by_stage, since_step, name) for name in StageSample.__slots__[1:]}
    if not any(columns["link_s"]):
        return None
    memory = [[own.activations for own in owns if own.activations] for owns in by_stage]
    try:
        return PipelineProfile(
            microbatches=count,
            forward_s=tuple(s / count for s in columns["forward_s"]),
            backward_s=tuple(s / count for s in columns["backward_s"]),
            weight_s=tuple(s / count for s in columns["weight_s"]),
            link_delay_s=columns["link_s"][1:],
            memory=tuple(min(min(own), count) for own in memory) if all(memory) else (),
        )
    except ValidationError:
        return None


def _slowest(by_stage: list[list[StageTimes]], since_step: int, name: str) -> tuple[float, ...]:
    """Return a quantity of each stage, that of its slowest process."""
    return tuple(max(median(_values(own, since_step, name)) for own in owns) for owns in by_stage)


def _values(own: StageTimes, since_step: int, name: str) -> Iterator[float]:
    """Yield the samples since the step, or all where there are none yet."""
    later = [sample for sample in own.samples if sample.step >= since_step]
    return (getattr(sample, name) for sample in later or own.samples)


def _phase(times: IterationTimes, name: str) -> float | None:
    values = known(trained(times, times.phases.get(name, ())))
    return median(values) if values else None
