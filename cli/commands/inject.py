"""`berth inject`: faults on nodes for drills, where the pool allows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from cli.api.answers import api, await_answer, report
from cli.api.http import Json, part, pool_field
from cli.app import ListGroup
from cli.errors import NotFound
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


SLOWING = {
    "slow": "Let all work on the node take longer: real workers are stopped and continued in turn.",
    "flap": "Let the node be slow for 10 s and well for 10 s, in turn.",
    "link": "Let communication with a virtual node take longer.",
}
"""Faults that multiply a time, and what they do."""


def slowing(fault: str) -> Callable[..., None]:
    """Return the verb of a fault that multiplies a time."""

    def send(
        node: Node,
        factor: Factor = 2.0,
        span: For = "60s",
        reason: Reason = "",
        pool: PoolOfObject = None,
        as_json: AsJson = False,
        data: Data = None,
    ) -> None:
        body: Json = {"fault": fault, "factor": factor, "for_s": parse_span_s(span)}
        answer = _send(node, "inject", {**body, "reason": reason, **pool_field(pool)}, data)
        report(as_json, answer, f"{node}: {fault} {factor:g}x for {span}")

    return send


for name, does in SLOWING.items():
    inject.command(name, help=does)(slowing(name))


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
    body: Json = {"fault": "stop", "for_s": parse_span_s(span)}
    answer = _send(node, "inject", {**body, "reason": reason, **pool_field(pool)}, data)
    report(as_json, answer, f"{node}: stop for {span}")


@inject.command()
def end(
    node: Node,
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """End the fault of a node before its time."""
    answer = _send(node, "end-injection", {"reason": reason, **pool_field(pool)}, data)
    outcome = "no fault was injected" if answer["duplicate"] else "the injected fault is over"
    report(as_json, answer, f"{node}: {outcome}")


def _send(node: str, verb: str, body: Json, data: Data) -> Json:
    """Send a command to the lane of a node, and return its answer."""
    client = api(data)
    try:
        return await_answer(client, client.post(f"/v1/nodes/{part(node)}/{verb}", body))
    except NotFound:
        raise NotFound(f"no such node: {node}; `berth nodes` lists all") from None
