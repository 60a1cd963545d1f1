"""`berth simulate-llm`: serve a trace of LLM requests under several disciplines."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.errors import BadInput
from cli.input.arguments import AsJson
from cli.input.choices import check_choice
from cli.text.output import emit, lines, table, working

DEFAULT_POLICIES = ("fcfs", "vtc", "berth")
SHOWN_TENANTS = 20


def simulate_llm(
    trace: Annotated[
        str, typer.Argument(help="Parquet file, name of a shared trace, or `synthetic`.")
    ],
    policy: Annotated[
        list[str] | None, typer.Option(help="Discipline; may be repeated. [fcfs, vtc, berth]")
    ] = None,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a batch.")] = 10_000,
    batch_requests: Annotated[int, typer.Option(min=1, help="Requests of a batch.")] = 256,
    tenant_per_minute: Annotated[
        int, typer.Option(min=1, help="Calls per minute of a tenant that throttling allows.")
    ] = 120,
    throttle: Annotated[
        bool, typer.Option("--throttle", help="Let `berth` throttle under overload.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of `synthetic`.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Serve a trace of LLM requests by a model of an engine and print fairness and waits."""
    from services.throttle.core.disciplines.catalog import DISCIPLINES
    from services.throttle.core.disciplines.limits import Limits
    from simulator.llm.batching import EngineLimits
    from simulator.llm.traces import read_llm_trace
    from simulator.workload.errors import TraceError

    policies = policy or list(DEFAULT_POLICIES)
    for name in policies:
        check_choice("--policy", name, DISCIPLINES)
    limits = Limits(tenant_per_minute=tenant_per_minute, throttles=throttle)
    engine = EngineLimits(batch_tokens, batch_requests)
    result: dict[str, Any] = {"trace": trace, "policies": {}}
    try:
        requests = read_llm_trace(trace, seed)
        with working("serving", as_json) as report_line:
            for name in policies:
                report_line(name)
                discipline = DISCIPLINES[name](limits)
                result["policies"][name] = _study(discipline, engine, requests)
    except (TraceError, ValueError) as error:
        raise BadInput(str(error)) from None
    result["requests"] = len(requests)
    if as_json:
        emit(result)
    else:
        _show(result)


def _study(discipline: Any, engine: Any, requests: Any) -> dict[str, Any]:
    from dataclasses import asdict

    from simulator.llm.measures import latencies, measure
    from simulator.llm.study import Study

    outcomes = Study(discipline, engine).run(requests)
    return {**asdict(measure(outcomes)), "tenants": latencies(outcomes)}


def _show(result: dict[str, Any]) -> None:
    policies = result["policies"]
    columns = ("max_gap", "mean_gap", "accumulated_gap", "tokens_per_s", "refused", "cut_midway")
    table(
        ("POLICY", *(column.replace("_", " ").upper() for column in columns)),
        ([name, *(f"{row[column]:,}" for column in columns)] for name, row in policies.items()),
    )
    first = next(iter(policies.values()))["tenants"]
    shown = sorted(first, key=lambda tenant: -first[tenant]["requests"])[:SHOWN_TENANTS]
    table(
        ("TENANT", *(f"{name.upper()} QUEUED P50/P99 S" for name in policies)),
        (
            [tenant, *(_waits(row["tenants"].get(tenant)) for row in policies.values())]
            for tenant in shown
        ),
    )
    lines(
        [
            f"{result['requests']:,} requests; gaps in units of service:"
            " a prompt token counts 1, an output token 2"
        ]
    )


def _waits(row: dict[str, float] | None) -> str:
    return "-" if row is None else f"{row['queued_p50_s']:.1f} / {row['queued_p99_s']:.1f}"
