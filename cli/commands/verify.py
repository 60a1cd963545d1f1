"""`berth verify`: verify the ledgers of an installation."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.api.target import data_dir
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, lines, table, working
from cli.text.times import clock

SHOWN = 50


def verify(
    whole: Annotated[
        bool, typer.Option("--whole", help="Read every ledger from its first record.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Verify the ledgers against the rules of the protocol, from the last green run on."""
    from cli.stack.verification import verified
    from infra.supervisor.running import load

    stack = load(data_dir(data))
    with working("verifying", as_json) as report_line:
        result = verified(stack, report_line, whole=whole)
    if as_json:
        emit(
            {
                "verify": "failed" if result.violations else "ok",
                "violations": result.violations,
                "open": result.open,
                "counts": result.counts,
                "rules": result.rules,
                "since_ms": result.since_ms,
            }
        )
    else:
        broken = {violation.partition(":")[0] for violation in result.violations}
        table(("RULE", "HOLDS"), ((rule, rule not in broken) for rule in result.rules))
        lines([*result.violations[:SHOWN], *result.open[:SHOWN]])
        counted = ", ".join(f"{count} {name}" for name, count in sorted(result.counts.items()))
        lines([f"{len(result.violations)} violations; {counted}"])
        if result.since_ms:
            lines([f"records since the green run of {clock(result.since_ms)}; all: --whole"])
    if result.violations:
        raise typer.Exit(1)
