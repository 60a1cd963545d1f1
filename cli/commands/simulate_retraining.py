"""`berth simulate-retraining`: an LLM engine that serves and retrains on the same GPU."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from cli.errors import BadInput
from cli.input.arguments import AsJson
from cli.input.choices import check_choice
from cli.text.output import emit, lines, table, working

FEW = (12, 600.0, 0.5)
"""Tenants, s and requests per s of `synthetic`: an engine that retrains has time to spare."""
COLUMNS = {
    "ttft_p99_s": "TTFT P99 S",
    "tpot_p99_s": "TPOT P99 S",
    "attainment": "MET",
    "mean_gap": "MEAN GAP",
    "worst_stale_s": "WORST AGE S",
    "updates": "UPDATES",
    "busy_ratio": "BUSY",
}


def simulate_retraining(
    trace: Annotated[
        str, typer.Argument(help="Parquet file, name of a shared trace, or `synthetic`.")
    ],
    policy: Annotated[
        list[str] | None, typer.Option(help="Policy; may be repeated. [all of them]")
    ] = None,
    ttft_s: Annotated[float, typer.Option(help="Deadline of the first token, s.")] = 2.0,
    tpot_s: Annotated[float, typer.Option(help="Deadline of the mean time per token, s.")] = 0.1,
    freshness_s: Annotated[
        float, typer.Option(help="Longest time between updates of an adapter, s.")
    ] = 60.0,
    period_s: Annotated[float, typer.Option(min=1.0, help="Period of `periodic`, s.")] = 60.0,
    drift: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Growth of a gap per s while a topic drifts.")
    ] = 0.005,
    seed: Annotated[int, typer.Option(help="Seed of `synthetic` and of the drift.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Serve a trace of LLM requests while the adapter of each tenant is retrained.

    Prints waits, deadlines met, and how far and how old the adapters were, by policy.
    """
    from services.throttle.core.retraining import RetrainingLimits
    from simulator.llm.retraining import POLICIES
    from simulator.llm.retraining_study import RetrainingStudy
    from simulator.llm.traces import SYNTHETIC, read_llm_trace, servegen_requests
    from simulator.workload.errors import TraceError

    policies = policy or list(POLICIES)
    for name in policies:
        check_choice("--policy", name, POLICIES)
    rows: dict[str, Any] = {}
    try:
        limits = RetrainingLimits(ttft_s, tpot_s, freshness_s)
        is_synthetic = trace == SYNTHETIC
        requests = servegen_requests(seed, *FEW) if is_synthetic else read_llm_trace(trace)
        study = RetrainingStudy(requests, limits, growth_per_s=drift, seed=seed)
        with working("serving", as_json) as report_line:
            for name in policies:
                report_line(name)
                rows[name] = asdict(study.run(name, period_s))
    except (TraceError, ValueError) as error:
        raise BadInput(str(error)) from None
    if as_json:
        emit({"trace": trace, "requests": len(requests), "policies": rows})
        return
    table(
        ("POLICY", *COLUMNS.values()),
        ([name, *(row[column] for column in COLUMNS)] for name, row in rows.items()),
    )
    lines([f"{len(requests):,} requests of {len({r.tenant for r in requests})} tenants"])
