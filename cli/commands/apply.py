"""`berth apply`: make an installation as a file declares it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.api.answers import api, await_answer
from cli.api.http import Api, Json, part
from cli.commands.apply_present import Installation, Present
from cli.commands.secrets import text_of_file
from cli.commands.tenants import create_topics, remove_kafka_user
from cli.errors import FAILED, BadInput
from cli.input.arguments import AsJson, Data
from cli.input.manifest import SIGNING_FILE, Declared, read_manifest
from cli.text.output import emit, lines, text_of

QUOTA_SETTINGS = 3
FIXED = {"key": "a key does not change: `berth keys revoke`, and another name, is allowed"}
"""Kinds whose objects are made and deleted, and what is possible in place of a change."""
UNORDERED = {"user": ("pools",), "webhook": ("events", "pools")}
"""Settings that are sets, by kind."""
SHOWN_ONCE = {"key": "key", "webhook": "secret"}
"""Fields of a receipt that are shown once, by kind."""
OWNED = ("secret", "user", "webhook")
"""Kinds whose routes have their tenant in the query."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The settings that have to be sent so that an object is as declared."""

    declared: Declared
    present: Present | None
    settings: Json

    @property
    def action(self) -> str:
        if self.declared.absent:
            return "delete" if self.present else "unchanged"
        if self.present is None:
            return "create"
        return "change" if self.settings else "unchanged"

    def document(self) -> Json:
        before = self.present.settings if self.present else {}
        return {
            "kind": self.declared.kind,
            "name": self.declared.name,
            "tenant": self.declared.owner or None,
            "action": self.action,
            "settings": {
                name: {"before": before.get(name), "after": value}
                for name, value in self.settings.items()
            },
        }


def apply(
    file: Annotated[
        Path, typer.Option("-f", "--file", help="Documents that declare objects; - is stdin.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the differences and change nothing.")
    ] = False,
    secrets: Annotated[
        Path | None,
        typer.Option(
            help="Folder below which files of secrets are read; that of the file if not given.",
            metavar="DIR",
        ),
    ] = None,
    replace_secrets: Annotated[
        bool, typer.Option("--replace-secrets", help="Set the secrets that exist as well.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Make pools, tenants, quotas, users, keys, secrets, webhooks, endpoints as a file declares.

    It prints what differs, then changes that and nothing else: settings and objects that the file
    does not name stay. `state: absent` deletes. Secrets that exist stay without --replace-secrets:
    their values are not compared. The exit code of --dry-run is 1 where something differs.
    """
    declared = read_manifest(file, secrets)
    client = api(data)
    installation = Installation(client)
    changes = [
        difference_of(item, installation.find(item), replace_secrets=replace_secrets)
        for item in declared
    ]
    if not as_json:
        lines(line for change in changes for line in diff_lines(change))
    due = [change for change in changes if change.action != "unchanged"]
    done = [] if dry_run else [_made(client, change, as_json, data) for change in due]
    if as_json:
        emit({"changes": [change.document() for change in changes], "applied": done})
    if dry_run and due:
        raise typer.Exit(FAILED)


def difference_of(
    declared: Declared, present: Present | None, *, replace_secrets: bool = False
) -> Difference:
    """Return what differs. Raises BadInput for an object that cannot be made or changed."""
    if declared.absent:
        return Difference(declared, present, {})
    if present is None:
        required = {"tenant": "default_pool", "quota": "guaranteed_gpus"}.get(declared.kind)
        if required and required not in declared.settings:
            raise BadInput(f"{declared.title}: {required}: missing; a new one needs it")
        return Difference(declared, None, declared.settings)
    if declared.kind == "secret":
        return Difference(declared, present, declared.settings if replace_secrets else {})
    differing = {
        name: value
        for name, value in declared.settings.items()
        if name != SIGNING_FILE and not _is_present(declared.kind, present, name, value)
    }
    if differing and (rule := FIXED.get(declared.kind)):
        raise BadInput(f"{declared.title}: {', '.join(differing)}: {rule}")
    return Difference(declared, present, differing)


def _is_present(kind: str, present: Present, name: str, value: object) -> bool:
    now = _present_value(kind, present, name)
    if name in UNORDERED.get(kind, ()) and isinstance(now, list) and isinstance(value, list):
        return set(now) == set(value)
    return now == value


def _present_value(kind: str, present: Present, name: str) -> object:
    """Return the value of a setting; a pool that was set before the setting existed lacks it."""
    from shared.contracts.pools import LEGACY_DEFAULTS

    if kind == "pool" and name not in present.settings:
        return LEGACY_DEFAULTS.get(name)
    return present.settings.get(name)


def diff_lines(change: Difference) -> list[str]:
    """Return the object with what is to be done, and a line for each setting that differs."""
    before = change.present.settings if change.present else {}
    action = change.action
    if change.declared.kind == "secret" and action == "unchanged" and change.present:
        action = "present, value not compared; --replace-secrets sets it"
    elif change.present and SIGNING_FILE in change.declared.settings:
        action += ", signing secret not compared"
    shown = [f"{change.declared.title}: {action}"]
    for name, value in sorted(change.settings.items()):
        old = f"{text_of(before.get(name))} -> " if change.present else ""
        shown.append(f"  {name}: {old}{text_of(value)}")
    return shown


def _made(client: Api, change: Difference, as_json: bool, data: Path | None) -> Json:
    """Send the change and wait for its decision; return it, with the key that is shown once."""
    ticket = _send(client, change)
    await_answer(client, ticket)
    declared, texts = change.declared, []
    if declared.kind == "tenant" and change.action == "create":
        texts += create_topics(declared.name, data)
    if declared.kind == "tenant" and declared.absent:
        remove_kafka_user(declared.name, data)
    if shown := ticket.get(SHOWN_ONCE.get(declared.kind, "")):
        texts.append(f"shown once: {shown}")
    if not as_json:
        lines([f"{declared.title}: {change.action}d", *texts])
    return {"kind": declared.kind, "name": declared.name, **ticket}


def _send(client: Api, change: Difference) -> Json:
    declared, present, settings = change.declared, change.present, change.settings
    kind, path = declared.kind, f"/v1/{declared.kind}s"
    if kind in OWNED:
        return _send_owned(client, change)
    if declared.absent:
        return client.delete(f"{path}/{part(declared.name)}")
    condition = {"if_version": present.version if present else "absent"}
    match kind:
        case "pool" | "endpoint" if present is None:
            set_ = {name: value for name, value in settings.items() if value is not None}
            return client.post(path, {kind: declared.name, **set_, **condition})
        case "pool" | "endpoint" | "tenant" if present is not None:
            return client.patch(f"{path}/{part(declared.name)}", {**settings, **condition})
        case "tenant":
            return client.post(path, {"tenant": declared.name, **settings, **condition})
        case "quota":
            # The whole quota can be read by the release before, too.
            send = client.post if len(settings) == QUOTA_SETTINGS else client.patch
            path = f"/v1/tenants/{part(declared.owner)}/quota"
            return send(path, {**settings, "pool": declared.name, **condition})
        case _:
            path = f"/v1/tenants/{part(declared.owner)}/keys"
            return client.post(path, {"key_id": declared.name, **settings})


def _send_owned(client: Api, change: Difference) -> Json:
    """Send the change of an object whose routes have its tenant in the query."""
    declared, present, settings = change.declared, change.present, change.settings
    kind, owner, path = declared.kind, {"tenant": declared.owner}, f"/v1/{declared.kind}s"
    named = f"{path}/{part(declared.name)}"
    if declared.absent:
        return client.delete(named, owner)
    if kind == "secret":
        return client.put(named, {"value": text_of_file(Path(str(settings["file"])))}, owner)
    if present is not None:
        condition = {"if_version": present.version} if present.version else {}
        return client.patch(named, {**settings, **condition}, owner)
    if kind == "user":
        return client.post(path, {"user": declared.name, **settings}, owner)
    body = {name: value for name, value in settings.items() if name != SIGNING_FILE}
    if file := settings.get(SIGNING_FILE):
        body["secret"] = text_of_file(Path(str(file)))
    return client.post(path, {"name": declared.name, **body}, owner)
