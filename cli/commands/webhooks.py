"""`berth webhooks`: addresses that state changes of a tenant's jobs are posted to."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from cli.api.answers import api, pages, report, report_once
from cli.api.http import Api, Json, part
from cli.commands.secrets import text_of_file
from cli.errors import BadInput, Refused, Unreachable
from cli.input.arguments import AsJson, Data, Limit
from cli.input.state_changes import parse_state_changes
from cli.text.output import emit, table
from cli.text.times import clock

webhooks = typer.Typer(
    no_args_is_help=True, help="Webhooks of tenants: create, list, set, delete, test."
)

RESULT_S = 30.0
LOOK_S = 0.2
Name = Annotated[str, typer.Argument(help="Name of the webhook.", metavar="NAME")]
Tenant = Annotated[
    str | None, typer.Option(help="Its tenant; that of the key if not given.", metavar="TENANT")
]


@webhooks.command()
def create(
    name: Name,
    url: Annotated[str, typer.Option(help="Address that gets a POST for each state change.")],
    events: Annotated[
        str,
        typer.Option(
            help="State changes, separated by commas: started, succeeded, failed, cancelled, "
            "preempted, rejected; end and fail stand for several."
        ),
    ] = "end",
    pool: Annotated[
        list[str] | None, typer.Option(help="Pool of the jobs; may be repeated; else every pool.")
    ] = None,
    tenant: Tenant = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the secret that signs its requests; else one is made and shown once."
        ),
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Create a webhook; the secret that signs its requests is shown once, or is that of a file."""
    body = {"name": name, "url": url, "events": parse_state_changes(events, "--events")}
    more: Json = {"pools": pool} if pool else {}
    if secret_file is not None:
        more["secret"] = text_of_file(secret_file)
    receipt = api(data).post("/v1/webhooks", {**body, **more}, {"tenant": tenant})
    if secret_file is not None:
        report(as_json, receipt, f"{name}: created")
    else:
        report_once(as_json, receipt, str(receipt["secret"]))


@webhooks.command("list")
def list_(
    tenant: Tenant = None, limit: Limit = 1000, as_json: AsJson = False, data: Data = None
) -> None:
    """List webhooks: what waits, was delivered, given up or dropped, and the last error."""
    rows = _rows(api(data), tenant, limit)
    if as_json:
        emit(rows)
        return
    columns = (
        "TENANT",
        "NAME",
        "URL",
        "EVENTS",
        "WAITING",
        "DELIVERED",
        "GIVEN UP",
        "DROPPED",
        "FAILING SINCE",
        "DISABLED",
        "ERROR",
    )
    table(columns, (_cells(row) for row in rows), "no webhooks")


@webhooks.command("set")
def set_(
    name: Name,
    url: Annotated[str | None, typer.Option(help="Its new address.")] = None,
    events: Annotated[
        str | None, typer.Option(help="State changes that it gets from now on, as of `create`.")
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option(help="Pool of the jobs; may be repeated; `null` alone: every pool."),
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Change the named settings of a webhook; what waits goes to the new address.

    The signing secret stays. A webhook that was disabled works again once a test succeeds.
    """
    changes: Json = {} if url is None else {"url": url}
    if events is not None:
        changes["events"] = parse_state_changes(events, "--events")
    if pool:
        changes["pools"] = None if pool == ["null"] else pool
    if not changes:
        raise BadInput("no setting; --url, --events or --pool is allowed")
    receipt = api(data).patch(f"/v1/webhooks/{part(name)}", changes, {"tenant": tenant})
    report(as_json, receipt, f"{name}: {', '.join(changes)} changed")


@webhooks.command()
def delete(name: Name, tenant: Tenant = None, as_json: AsJson = False, data: Data = None) -> None:
    """Delete a webhook and its secret; what waits to be sent to it is dropped."""
    receipt = api(data).delete(f"/v1/webhooks/{part(name)}", {"tenant": tenant})
    report(as_json, receipt, f"{name}: deleted")


@webhooks.command()
def test(name: Name, tenant: Tenant = None, as_json: AsJson = False, data: Data = None) -> None:
    """Send one event to a webhook now, and wait for the result.

    A webhook that was disabled works again once it has taken one.
    """
    client = api(data)
    before = _row(client, name, tenant)
    client.post(f"/v1/webhooks/{part(name)}/test", query={"tenant": tenant})
    ends_s = time.monotonic() + RESULT_S
    while (row := _row(client, name, tenant))["tested_at"] == before.get("tested_at", 0):
        if time.monotonic() > ends_s:
            raise Unreachable(f"{name}: no result after {RESULT_S:g} s")
        time.sleep(LOOK_S)
    report(as_json, row, f"{name}: {row['test_result']}")
    if row["test_result"] != "delivered":
        raise Refused(f"{name}: the test event was not delivered")


def _rows(client: Api, tenant: str | None, limit: int = 1000) -> list[Json]:
    return pages(client, "/v1/webhooks", {"tenant": tenant}, limit)


def _row(client: Api, name: str, tenant: str | None) -> Json:
    """Return the webhook; an operator's key may see those of several tenants."""
    return next((row for row in _rows(client, tenant) if row["name"] == name), {"tested_at": 0})


def _cells(row: Json) -> list[object]:
    counts = (row[name] for name in ("waiting", "delivered", "given_up", "dropped"))
    events = ",".join(map(str, row["events"])) if isinstance(row["events"], list) else ""
    times = (clock(row["failing_since"]), clock(row["disabled_at"]))
    return [row["tenant"], row["name"], row["url"], events, *counts, *times, row["last_error"]]
