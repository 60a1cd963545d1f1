"""`berth upgrade`: the state of an upgrade to this release, and its end."""

from __future__ import annotations

from typing import Any, cast

import typer

from cli.api.answers import api, await_answer, items, report
from cli.api.http import Json
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, lines, table

upgrade = typer.Typer(
    no_args_is_help=True, help="Upgrades: status, finish. Until then the way back is open."
)


@upgrade.command()
def status(as_json: AsJson = False, data: Data = None) -> None:
    """Show which pools keep the event types of an earlier release."""
    state = upgrade_state(items(api(data).get("/v1/pools")))
    if as_json:
        emit(state)
        return
    rows = cast("list[Any]", state["pools"])
    held = ((row["pool"], row["release"], ", ".join(row["held"]) or "-") for row in rows)
    table(("POOL", "RELEASE", "HELD UNTIL FINISHED"), held, "no pools")
    lines([text_of_state(bool(state["finished"]))])


@upgrade.command()
def finish(as_json: AsJson = False, data: Data = None) -> None:
    """Write the event types of this release from now on. The release before cannot come back."""
    client = api(data)
    answer = await_answer(client, client.post("/v1/upgrade/finish", None))
    is_repeated = bool(answer.get("duplicate"))
    report(as_json, answer, "upgrade: already finished" if is_repeated else "upgrade: finished")


def upgrade_state(pools: list[Json]) -> Json:
    """Return the release, whether all pools are of it, and what each of them holds back."""
    from shared.contracts.pools import LEGACY_DEFAULTS, RELEASE
    from shared.contracts.releases import settings_above

    rows: list[Json] = []
    for row in pools:
        settings, release = cast("Json", row["settings"]), cast("int", row.get("release", 0))
        values = {
            name: settings.get(name, LEGACY_DEFAULTS[name]) for name in settings_above(release)
        }
        held = [f"{name}={value}" for name, value in values.items()]
        rows.append({"pool": row["pool"], "release": release, "held": held})
    is_finished = all(cast("int", row["release"]) >= RELEASE for row in rows)
    return {"release": RELEASE, "finished": is_finished, "pools": rows}


def text_of_state(is_finished: bool) -> str:
    if is_finished:
        return "upgrade finished: an earlier release cannot take over"
    return "upgrade not finished: the way back is open until `berth upgrade finish`"
