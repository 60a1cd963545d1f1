"""Own work and waiting of each rank of the watched jobs: pure, disposable, not in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from services.failslow.core.diagnosis.verdict import Diagnosis
from services.failslow.core.diagnosis.waiting import COMM, RankSample, RankTimes, cause_of_job
from services.failslow.core.diagnosis.worker import known
from services.failslow.core.gangs import times_of_workers
from services.failslow.core.measures.own_times import trained
from services.failslow.core.state import FailSlowState, GangState
from services.failslow.core.suspicion.attempts import OfAttempts
from shared.contracts.paces import JobPaceChanged
from shared.contracts.reports import IterationTimes, TelemetryReported

OF_EARLIER_RUNS = Diagnosis(
    "unknown", (), 0.0, ("own work and waiting of earlier runs are not kept",)
)


class WaitProfiles:
    """By job and rank; a shell keeps one per lane."""

    def __init__(self) -> None:
        self._jobs: OfAttempts[dict[int, RankTimes]] = OfAttempts(dict)

    def add(self, report: TelemetryReported, gangs: Mapping[str, GangState]) -> None:
        """Add the reports that name steps, own work and waiting; others show no cause."""
        for gang, times in times_of_workers(report, gangs):
            self._note(gang, times)

    def forget_ended(self, state: FailSlowState) -> None:
        self._jobs.forget_ended(state.gangs)

    def diagnosed(self, change: JobPaceChanged) -> JobPaceChanged:
        """Return the change of a job's pace with its cause, as far as it is known."""
        if not change.is_slow:
            return change
        if change.earlier_runs:
            return with_cause(change, OF_EARLIER_RUNS)
        ranks = self._jobs.of(change.job_id, change.attempt) or {}
        grown_s = change.iteration_s - change.usual_s
        return with_cause(change, cause_of_job(ranks, change.since_step, grown_s))

    def _note(self, gang: GangState, times: IterationTimes) -> None:
        own, wait = known(trained(times, times.own_s)), known(trained(times, times.wait_s))
        if not (times.steps and own and wait):
            return
        ranks = self._jobs.begin(times.job_id, gang.attempt)
        rank = ranks.setdefault(times.rank, RankTimes())
        if rank.samples and times.steps[-1] <= rank.samples[-1].step:
            return
        columns = {
            name: values
            for name, column in times.phases.items()
            if name.startswith(COMM) and (values := known(trained(times, column)))
        }
        comm_s = {name: median(values) for name, values in columns.items()}
        rank.layout = times.layout
        late = known(trained(times, times.delay_s))
        delay_s = median(late) if late else 0.0
        rank.samples.append(RankSample(times.steps[-1], median(own), median(wait), comm_s, delay_s))


def with_cause(change: JobPaceChanged, diagnosis: Diagnosis) -> JobPaceChanged:
    update = {
        "cause": diagnosis.cause,
        "cause_confidence": diagnosis.confidence,
        "cause_evidence": diagnosis.evidence,
    }
    return change.model_copy(update=update)
