"""Output of the demo: the JSON summary of a check, and suggested commands."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from cli.demo.llm import LlmDemo
from cli.demo.local_jobs import local_jobs
from cli.demo.replay import ReplayOutcome
from cli.replay.progress import TERMINAL
from cli.replay.submission import exit_code
from cli.stack.addresses import address_lines
from cli.stack.verification import verified
from infra.supervisor.running import RunningStack
from simulator.workload.rows import WorkloadJob

SHOWN = 20
LLM_VERBS = (
    "          berth endpoints show demo/Chat-7B; berth llm top; berth llm usage --rejected",
    "          berth llm requests; berth llm why REQUEST; berth llm fairness",
)


def summary(
    outcome: ReplayOutcome, jobs: Sequence[WorkloadJob], speed: float, began_s: float
) -> dict[str, object]:
    """Return the JSON summary.

    `verify` is ok if all jobs ended, no rule was violated and the LLM part was good.
    """
    progress = outcome.progress
    counts = Counter(progress.phase(job_id) for job_id in outcome.replayed)
    local = Counter(progress.phase(job_id) for job_id in outcome.local)
    report = verified(outcome.stack)
    llm = outcome.llm.verdict() if outcome.llm is not None else None
    good = not outcome.missing and not report.violations and set(local) <= {"succeeded"}
    good = good and (llm is None or llm.good)
    return {
        "verify": "ok" if good else "failed",
        "jobs": {
            "submitted": len(outcome.replayed),
            **{phase: counts[phase] for phase in TERMINAL},
        },
        "planned_failures": planned_failures(jobs),
        "speed": speed,
        "wall_s": round(time.time() - began_s, 2),
        "first_placed_s": round(progress.first_placed_at / 1000 - began_s, 2),
        "p50_wait_s": progress.p50_wait_s(),
        "local_jobs": {"submitted": len(outcome.local), **local},
        **({"llm": llm.summary} if llm is not None else {}),
        "missing": outcome.missing[:SHOWN],
        "violations": report.violations[:SHOWN],
        "counts": report.counts,
        "peak_rss_mib": round(outcome.memory.peak_rss_mib, 1),
        "peak_pss_mib": round(outcome.memory.peak_pss_mib, 1),
        "peak_mib_by_process": {
            name: round(mib, 1) for name, mib in sorted(outcome.memory.by_process_mib.items())
        },
    }


def advice(
    stack: RunningStack, jobs: Sequence[WorkloadJob], llm: LlmDemo | None = None
) -> list[str]:
    """Return the lines shown while the demo runs."""
    return [
        "",
        f"API       {stack.gateway}   (key: {stack.data_dir / 'operator.key'})",
        f"routes    {stack.gateway}/docs",
        *address_lines(stack),
        *(llm.advice() if llm is not None else ()),
        f"workload  {len(jobs)} jobs; {planned_failures(jobs)} of them fail on purpose; "
        f"{len(local_jobs(''))} more are programs on this machine",
        "try       berth jobs; berth nodes; berth tenants list; berth events",
        "          berth submit --pool local --tenant vision -- /bin/sh -c 'echo hello'",
        "          berth why JOB; berth trace JOB; berth verify",
        *(LLM_VERBS if llm is not None else ()),
        "press Ctrl-C to stop",
    ]


def planned_failures(jobs: Sequence[WorkloadJob]) -> int:
    """Return the number of jobs that their workload lets fail."""
    return sum(exit_code(job.succeeded) != 0 for job in jobs)
