"""`berth inject`: faults on nodes for drills, where the pool allows them."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.api.answers import api, await_answer, report
from cli.api.http import Json, part, pool_field
from cli.app import ListGroup
from cli.input.arguments import AsJson, Data, PoolOfObject, Reason
from cli.text.times import parse_span_s

Node = Annotated[str, typer.Option("--node", help="Node id.")]
Factor = Annotated[float, typer.Option(help="Multiple of the time that it takes: above 1, to 100.")]
For = Annotated[str, typer.Option("--for", help="Time until it ends by itself, such as 90s, 5m.")]

inject = typer.Typer(
    cls=ListGroup,
    no_args_is_help=True,
    help="Inject faults on nodes for drills (pool setting allow_injection; role admin).",
)


@inject.command()
def slow(
    node: Node,
    factor: Factor = 2.0,
    span: For = "60s",
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Let all work on the node take longer: real workers are stopped and continued in turn."""
    _send(node, {"fault": "slow", "factor": factor}, span, reason, pool, as_json, data)


@inject.command()
def stop(
    node: Node,
    span: For = "60s",
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Let all work on the node stand still; it goes on afterwards."""
    _send(node, {"fault": "stop"}, span, reason, pool, as_json, data)


@inject.command()
def flap(
    node: Node,
    factor: Factor = 2.0,
    span: For = "60s",
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Let the node be slow for 10 s and well for 10 s, in turn."""
    _send(node, {"fault": "flap", "factor": factor}, span, reason, pool, as_json, data)


@inject.command()
def link(
    node: Node,
    factor: Factor = 2.0,
    span: For = "60s",
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Let communication with a virtual node take longer."""
    _send(node, {"fault": "link", "factor": factor}, span, reason, pool, as_json, data)


@inject.command()
def end(
    node: Node,
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """End the fault of a node before its time."""
    client = api(data)
    body: Json = {"reason": reason, **pool_field(pool)}
    answer = await_answer(client, client.post(f"/v1/nodes/{part(node)}/end-injection", body))
    outcome = "no fault was injected" if answer["duplicate"] else "the injected fault is over"
    report(as_json, answer, f"{node}: {outcome}")


def _send(
    node: str, fault: Json, span: str, reason: str, pool: str | None, as_json: bool, data: Data
) -> None:
    client = api(data)
    body: Json = {**fault, "for_s": parse_span_s(span), "reason": reason, **pool_field(pool)}
    answer = await_answer(client, client.post(f"/v1/nodes/{part(node)}/inject", body))
    factor = f" {fault['factor']:g}x" if "factor" in fault else ""
    report(as_json, answer, f"{node}: {fault['fault']}{factor} for {span}")
