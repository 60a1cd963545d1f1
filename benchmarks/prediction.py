"""Run times predicted on traces, strictly causally: coverage and pinball loss of each predictor.

A job's run time is learnt only once it has ended; the last 40 % of a trace's time is judged. Each
loss is the mean over p10, p50 and p90, in log10 s and in s. `starts`: the trace is scheduled by
FCFS at load 0.9, skipping or with EASY, and the jobs that wait get an interval for their start, of
the whole trace by the compiled kernel and of its first `--live-jobs` by the cores of the services.
`met` or `not met` per goal; `--out DIR` writes a page. LightGBM joins in where it is installed, as
with the extra `dev`; it is not needed to run Berth.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.parts.command import Json, serve
from benchmarks.parts.prediction import boosted, peers
from benchmarks.parts.prediction.goals import goals_of, goals_of_starts
from benchmarks.parts.prediction.history_predictors import (
    predict_blind,
    predict_by_history,
    predict_calibrated,
)
from benchmarks.parts.prediction.jobs import Floats, RecordedJobs, read_history
from benchmarks.parts.prediction.live_starts import estimate_live_starts
from benchmarks.parts.prediction.measures import errors_of
from benchmarks.parts.prediction.page import render_page
from benchmarks.parts.prediction.spread import add_spread, repeat_point
from benchmarks.parts.prediction.starts import EstimatedStarts, estimate_starts
from benchmarks.parts.result import finish
from benchmarks.parts.traces import chosen_traces
from shared.process.progress import ReportLine

SHARED = ("helios_venus", "helios_vc_users", "philly", "msft_itp", "alibaba_pai_2020")
SYNTHETIC = ("synthetic:helios", "synthetic:philly")
LIVE_JOBS = 8_000
HARDLY_ANY = "hardly any job waits"


@dataclass(frozen=True, slots=True)
class PredictionOptions:
    """`trace` is a path or a name; without one every shared trace, or two synthetic ones."""

    trace: str = ""
    without_boosting: bool = False
    live_jobs: int = LIVE_JOBS
    out: str = ""


async def run(options: PredictionOptions, report_line: ReportLine) -> Json:
    """Return `traces` with the errors of each predictor, and `goals`."""
    began_s = time.process_time()
    names = chosen_traces(options.trace, SHARED, SYNTHETIC)
    histories = [read_history(name) for name in names]
    traces = [measure(jobs, histories, options, report_line) for jobs in histories]
    verdicts = [verdict for trace in traces for verdict in trace["goals"].values()]  # type: ignore[attr-defined]
    result: Json = {
        "bench": "prediction",
        "traces": traces,
        "goals_met": verdicts.count("met"),
        "goals_not_met": verdicts.count("not met"),
    }
    return finish(result, began_s, options.out, render_page)


def measure(
    jobs: RecordedJobs,
    histories: list[RecordedJobs],
    options: PredictionOptions,
    report_line: ReportLine,
) -> Json:
    """Return the errors of every predictor on one trace."""
    name = jobs.trace
    report_line(f"{name}: {len(jobs):,} jobs, {int(jobs.judged.sum()):,} judged")
    predicted = predict_all(jobs)
    if boosted.is_installed() and not options.without_boosting:
        predicted |= predict_boosted(jobs, [other for other in histories if other is not jobs])
    errors = {key: errors_of(jobs, quantiles_s) for key, quantiles_s in predicted.items()}
    report_line(f"{name}: starts")
    starts = starts_of(name, options.live_jobs)
    has_owners = bool((jobs.tenant >= 0).any() or (jobs.user >= 0).any() or (jobs.name >= 0).any())
    return {
        "trace": name,
        "jobs": len(jobs),
        "judged": int(jobs.judged.sum()),
        "predictors": {key: error.plain() for key, error in errors.items()},
        **{key: one.plain() if one else HARDLY_ANY for key, one in starts.items()},
        "goals": goals_of(errors, has_owners) | goals_of_starts(starts),
    }


def starts_of(trace: str, live_jobs: int) -> dict[str, EstimatedStarts | None]:
    """Return the estimates of starts by key of the result; None where hardly any job waits."""
    return {
        "starts": estimate_starts(trace, "skip"),
        "starts_easy": estimate_starts(trace, "easy"),
        "starts_live": estimate_live_starts(trace, "skip", live_jobs),
        "starts_live_easy": estimate_live_starts(trace, "easy", live_jobs),
    }


def predict_all(jobs: RecordedJobs) -> dict[str, Floats]:
    """Return [n, 3] in s per predictor; one of a single run time is also given a spread."""
    last_two_s = peers.predict_last_two(jobs)
    return {
        "blind": predict_blind(jobs),
        "last_two": repeat_point(last_two_s),
        "last_two_spread": add_spread(jobs, last_two_s),
        "history": predict_by_history(jobs),
        "ours": predict_calibrated(jobs),
    }


def predict_boosted(jobs: RecordedJobs, others: list[RecordedJobs]) -> dict[str, Floats]:
    """Return [n, 3] in s by boosted trees; those of other traces need other traces."""
    qssf_s = boosted.predict_qssf(jobs, peers.predict_rolling(jobs))
    predicted = {
        "qssf": repeat_point(qssf_s),
        "qssf_spread": add_spread(jobs, qssf_s),
        "lightgbm_quantiles": boosted.predict_quantiles(jobs),
    }
    if others:
        predicted["lightgbm_unseen"] = boosted.predict_unseen(jobs, others)
    return predicted


if __name__ == "__main__":
    serve(run, PredictionOptions, __doc__ or "")
