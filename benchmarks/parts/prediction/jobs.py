"""Jobs of a trace in the order of their submission, and the order of their ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.kernel.causal import distributions_of
from simulator.kernel.work import Work, build_work
from simulator.workload.columns import Columns
from simulator.workload.source import read_columns

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

JUDGED_FROM = 0.6
"""Share of a trace's time after which predictions are judged."""
SYNTHETIC_JOBS = 4000


@dataclass(frozen=True, slots=True)
class RecordedJobs:
    """`n` jobs; each is taken to run as soon as it is submitted: traces have no other start.

    `tenant`, `user` and `name` are codes, -1 where the trace has none.
    """

    trace: str
    work: Work
    submit_s: Floats
    ran_s: Floats
    gpus: Floats
    tenant: Codes
    user: Codes
    name: Codes
    distributions: Floats
    """[n, BINS] of history at the job's submission."""
    judged: Mask

    def __len__(self) -> int:
        return len(self.submit_s)

    def known_before_judgement(self) -> Mask:
        """Return the jobs that had ended when the judged window began."""
        begin_s = self.submit_s[self.judged][0]
        return np.asarray(self.submit_s + self.ran_s <= begin_s)

    def steps(self) -> Iterator[tuple[list[int], int]]:
        """Yield for each job the jobs that ended since the one before, by end, and its index."""
        submit_ms, end_ms = self.work.submit_ms, self.work.submit_ms + self.work.duration_ms
        by_end = np.argsort(end_ms, kind="stable")
        upto = np.searchsorted(end_ms[by_end], submit_ms, side="right")
        ended, order = 0, by_end.tolist()
        for job, count in enumerate(upto.tolist()):
            yield order[ended:count], job
            ended = count


def read_history(trace: str) -> RecordedJobs:
    """Read a trace; raises TraceError."""
    columns = read_columns(trace, SYNTHETIC_JOBS if trace.startswith("synthetic") else None)
    work = build_work(columns)
    on_gpus = columns.gpus > 0
    submit_s, ran_s = work.submit_ms / 1000.0, work.duration_ms / 1000.0
    begin_s = submit_s[0] + JUDGED_FROM * (submit_s[-1] - submit_s[0])
    return RecordedJobs(
        trace=trace,
        work=work,
        submit_s=submit_s,
        ran_s=ran_s,
        gpus=columns.gpus[on_gpus],
        tenant=columns.tenant[on_gpus].astype(np.int64),
        user=user_codes(columns, on_gpus),
        name=columns.name[on_gpus].astype(np.int64),
        distributions=distributions_of(work),
        judged=np.asarray(submit_s >= begin_s),
    )


def user_codes(columns: Columns, on_gpus: Mask) -> Codes:
    """Return a code per (tenant, user), -1 where the user is unknown."""
    tenant, user = columns.tenant[on_gpus].astype(np.int64), columns.user[on_gpus].astype(np.int64)
    return np.where(user >= 0, (tenant + 1) * (len(columns.users) + 1) + user, -1)
