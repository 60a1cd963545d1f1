"""Text of a what-if: how far it is to be believed, the policies, and the tenants under each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cli.text.times import moment

IN_ROUNDS = "rounds:"
"""Prefix of a scheduler among the policies."""
Json = dict[str, Any]
Table = tuple[tuple[str, ...], list[tuple[object, ...]]]


def notes(document: Json) -> Iterator[str]:
    """Yield the time, the jobs, the errors of the replay, and what was left out."""
    jobs, fidelity = document["jobs"], document["fidelity"]
    yield (
        f"{document['pool']}: {jobs['counted']} jobs arrived from {moment(document['from_at'])} to"
        f" {moment(document['to_at'])}, on {document['mean_gpus']:g} GPUs on average; the replay"
        f" begins at {moment(document['begin_at'])} with {jobs['replayed']} jobs in all,"
        f" {jobs['carried']} of them under way"
    )
    for name, shown in (("first_wait", "first waits"), ("wait", "all waits")):
        yield f"fidelity of {shown}: {_errors(fidelity[name])}"
    for reason, count in jobs["left_out"].items():
        yield f"not counted: {count} {reason}"
    if jobs["cut_short"]:
        yield f"{jobs['cut_short']} counted jobs were cancelled: they run as long as they did"
    if jobs["retried"]:
        yield f"{jobs['retried']} counted jobs had failed attempts, which are not replayed"
    if document["policy_changes"]:
        changes = document["policy_changes"]
        yield f"the policy changed {changes} times in this time: the replay has the last settings"
    for shadow in document["shadows"]:
        yield _shadow(shadow)
    for policy, reason in document["left_out"].items():
        yield f"not tried: {policy}: {reason}"


def _shadow(shadow: Json) -> str:
    name, count, agreement = shadow["policy"], shadow["orders"], shadow["agreement"]
    if not name.startswith(IN_ROUNDS):
        return (
            f"shadow {name}: {count} recorded orders, Kendall's tau with the order in effect"
            f" {agreement:.2f} on average"
        )
    refused = f"; {shadow['refused']} broke a rule or did not come" if shadow["refused"] else ""
    return (
        f"shadow {name}: {count} recorded proposals, {agreement:.0%} of the GPUs to the same jobs"
        f" on the same types as in effect, on average{refused}"
    )


def _errors(errors: Json) -> str:
    return (
        f"recorded {errors['recorded_mean_s']:,.1f} s, replayed {errors['replayed_mean_s']:,.1f} s"
        f" ({_change(errors['change'])}); by job {errors['mean_absolute_error_s']:,.1f} s off on"
        f" average, {errors['p90_absolute_error_s']:,.1f} s at p90,"
        f" {errors['close_share']:.0%} within a minute"
    )


def policy_table(document: Json) -> Table:
    """Return the table of the policies."""
    columns = (
        "POLICY",
        "WAIT S [95%]",
        "P99 S",
        "JCT S [95%]",
        "USE",
        "JAIN",
        "RHO",
        "STOPS",
        "LOST",
        "WAIT CHANGE",
        "JCT CHANGE",
    )
    return columns, [_policy_cells(row) for row in document["rows"]]


def tenant_table(document: Json) -> Table:
    """Return the table of the tenants under each policy."""
    columns = ("POLICY", "TENANT", "JOBS", "WAIT S", "JCT S", "RHO", "STOPS", "WAIT CHANGE")
    rows: list[tuple[object, ...]] = [
        (
            row["name"],
            tenant["tenant"],
            tenant["jobs"],
            f"{tenant['mean_wait_s']:,.1f}",
            f"{tenant['mean_jct_s']:,.1f}",
            _number(tenant["rho"]),
            tenant["stops"],
            _change(tenant["wait_change"]),
        )
        for row in document["rows"]
        for tenant in row["tenants"]
    ]
    return columns, rows


def _policy_cells(row: Json) -> tuple[object, ...]:
    return (
        row["name"],
        _mean(row["mean_wait_s"], row["wait_interval"]),
        f"{row['p99_wait_s']:,.1f}",
        _mean(row["mean_jct_s"], row["jct_interval"]),
        "-" if row["use"] is None else f"{row['use']:.1%}",
        _number(row["jain"]),
        _number(row["worst_rho"]),
        row["stops"],
        f"{row['lost_share']:.1%}",
        _change(row["wait_change"]),
        _change(row["jct_change"]),
    )


def _mean(mean: float, interval: list[float] | None) -> str:
    if interval is None:
        return f"{mean:,.1f} [unknown]"
    return "{:,.1f} [{:,.1f}, {:,.1f}]".format(mean, *interval)


def _change(change: Json | None) -> str:
    """Return a change in percent, "" for the row that the others are compared with."""
    if change is None:
        return ""
    if change["gain"] is None:
        return "unknown"
    if change["interval"] is None:
        return f"{change['gain']:+.1%} [unknown]"
    return "{:+.1%} [{:+.1%}, {:+.1%}]".format(change["gain"], *change["interval"])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
