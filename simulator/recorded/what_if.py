"""A recorded slice under several policies, beside what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shared.process.progress import ReportLine
from simulator.engine.candidate import PRESENT, TrialCandidate
from simulator.engine.run import simulate
from simulator.metrics.outcome import ScheduleOutcome
from simulator.recorded.fidelity import Fidelity, fidelity_of
from simulator.recorded.league import ROUNDS, under
from simulator.recorded.record import recorded_outcome
from simulator.recorded.rounds import play_in_rounds
from simulator.recorded.rows import Played, PolicyRow, rows_of
from simulator.recorded.slice import RecordedSlice

RECORDED = "recorded"
SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Rows of the record, of the replay under the present settings, and of each policy.

    Changes are against the replay under the present settings: errors of the replay are in both.
    """

    fidelity: Fidelity
    rows: list[PolicyRow]


def play(
    part: RecordedSlice,
    policies: Sequence[TrialCandidate],
    schedulers: Sequence[str],
    report: ReportLine = lambda line: None,
) -> WhatIf:
    """Simulate the slice under the present settings, the policies and the schedulers of rounds."""
    recorded = recorded_outcome(part)
    report(f"playing {len(part.jobs)} jobs: {PRESENT}")
    base = simulated_outcome(part)
    played = [Played(RECORDED, RECORDED, recorded), Played(PRESENT, SIMULATED, base)]
    for policy in policies:
        report(f"playing {len(part.jobs)} jobs: {policy.name}")
        outcome = simulated_outcome(under(part, policy.settings))
        played.append(Played(policy.name, SIMULATED, outcome))
    for name in schedulers:
        report(f"playing {len(part.jobs)} jobs: {name}, {ROUNDS}")
        played.append(Played(f"{name}, {ROUNDS}", ROUNDS, play_in_rounds(part, name)))
    tenants = sorted({job.tenant for job in part.jobs})
    return WhatIf(
        fidelity_of(recorded, base, part.counted), rows_of(played, base, part.counted, tenants)
    )


def simulated_outcome(part: RecordedSlice) -> ScheduleOutcome:
    """Return the outcome under the scenario's settings, with the use of the nodes that were there
    on average.
    """
    return replace(simulate(part.scenario).outcome, capacity_gpus=part.mean_gpus)
