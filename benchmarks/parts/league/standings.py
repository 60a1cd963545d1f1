"""The table of one trace: each policy beside Berth's default, and whether they differ."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.parts.league.days import LeagueDays, counted, jct_of, replays_of, units_of, work_of
from benchmarks.parts.league.entrants import BASE, OURS, Entrant
from benchmarks.parts.league.rounds import play_in_rounds
from benchmarks.parts.policies.continuous import Replay
from benchmarks.parts.policies.rules import SKIP_FCFS
from shared.process.progress import ReportLine
from simulator.metrics.bootstrap import gain
from simulator.metrics.outcome import Floats, Ints, ScheduleOutcome

BETTER, WORSE, ALIKE = "better", "worse", "no difference"


@dataclass(frozen=True, slots=True)
class MeanChange:
    """A change of the mean completion time, and its interval; NaN: not known."""

    change: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """The side of zero that the interval is on; one that is not known decides nothing."""
        if self.high < 0.0:
            return BETTER
        return WORSE if self.low > 0.0 else ALIKE


@dataclass(frozen=True, slots=True)
class Played:
    """An entrant with the outcome of each part."""

    entrant: Entrant
    outcomes: list[ScheduleOutcome]
    cpu_s: float

    @property
    def jct_s(self) -> Floats:
        return jct_of(self.outcomes)


def of_trace(
    trace: str, days: LeagueDays, chosen: Sequence[Entrant], report_line: ReportLine
) -> dict[str, Any]:
    """Return the parts and rows of one trace, rows by mean completion time."""
    replays = replays_of(trace, days)
    report_line(f"{trace}: {sum(len(own.work) for own in replays):,} jobs in {len(replays)} parts")
    like = [replay.run(SKIP_FCFS.rules) for replay in replays]
    played = []
    for entrant in chosen:
        played.append(play(entrant, replays, like))
        report_line(f"{trace}, {entrant.name}: {played[-1].cpu_s:.1f} CPU-s")
    parts = [
        {
            "name": replay.name,
            "jobs": len(replay.work),
            "counted": int(counted(outcome).sum()),
            "left_out": int((outcome.in_window & ~outcome.fits).sum()),
            "nodes": len(replay.sizes),
            "load": round(replay.load, 3),
        }
        for replay, outcome in zip(replays, like, strict=True)
    ]
    return {"parts": parts, **standings(played)}


def play(entrant: Entrant, replays: Sequence[Replay], like: Sequence[ScheduleOutcome]) -> Played:
    began_s = time.process_time()
    outcomes = [
        replay.run(entrant.rules)
        if entrant.rules is not None
        else play_in_rounds(replay, entrant, own)
        for replay, own in zip(replays, like, strict=True)
    ]
    return Played(entrant, outcomes, round(time.process_time() - began_s, 1))


def standings(played: Sequence[Played]) -> dict[str, Any]:
    """Return `rows`, the `winner` among those that can be deployed, and its `equals`."""
    units = units_of(played[0].outcomes)
    by_name = {own.entrant.name: own for own in played}
    ranked = sorted(played, key=lambda own: float(own.jct_s.mean()))
    winner = next(own for own in ranked if own.entrant.is_deployable)
    rows = [row_of(own, by_name[OURS], by_name[BASE], winner, units) for own in ranked]
    equals = equals_of(rows, winner.entrant.name)
    return {"winner": winner.entrant.name, "equals": equals, "rows": rows}


def equals_of(rows: Sequence[dict[str, Any]], winner: str) -> list[str]:
    """Return the policies for pools that end, and are not worse than the winner beyond doubt."""
    return [
        row["name"]
        for row in rows
        if row["runtime_source"] != "oracle"
        and row["name"] != winner
        and row["vs_winner"]["verdict"] == ALIKE
        and not row["without_end"]
    ]


def row_of(own: Played, ours: Played, base: Played, winner: Played, units: Ints) -> dict[str, Any]:
    jct_s = own.jct_s
    delay_s = jct_s - work_of(own.outcomes)
    held = sum(float((one.held_s * one.gpus)[one.fits].sum()) for one in own.outcomes)
    lost = sum(float((one.lost_s * one.gpus)[one.fits].sum()) for one in own.outcomes)
    starts = np.concatenate([one.starts[counted(one)] for one in own.outcomes])
    return {
        "name": own.entrant.name,
        "runtime_source": own.entrant.runtime_source,
        "jct_h": round(float(jct_s.mean()) / 3600, 3),
        "wait_h": round(float(delay_s.mean()) / 3600, 3),
        "p99_wait_h": round(float(np.quantile(delay_s, 0.99)) / 3600, 2),
        "stops_per_job": round(float(starts.mean()) - 1.0, 3),
        "lost": round(lost / held, 4),
        "without_end": sum(int((~one.ended & one.fits).sum()) for one in own.outcomes),
        "vs_ours": plain(change(ours.jct_s, jct_s, units)),
        "vs_base": plain(change(base.jct_s, jct_s, units)),
        "vs_winner": plain(change(winner.jct_s, jct_s, units)),
        "cpu_s": own.cpu_s,
    }


def change(base: Floats, own: Floats, units: Ints) -> MeanChange:
    """Return the change of the mean over that of the base; of equal outcomes it is exactly 0."""
    if np.array_equal(base, own):
        return MeanChange(0.0, 0.0, 0.0)
    paired = gain(base, own, units)
    return MeanChange(paired.gain, paired.low, paired.high)


def plain(paired: MeanChange) -> dict[str, Any]:
    figures = {
        name: None if math.isnan(value) else round(value, 4)
        for name, value in asdict(paired).items()
    }
    return {**figures, "verdict": paired.verdict}
