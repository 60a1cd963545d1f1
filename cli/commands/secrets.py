"""`berth secrets`: secrets of tenants, which jobs name as `secret://NAME`; values are not shown."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.api.answers import api, pages, report
from cli.api.http import Api, Json, part
from cli.errors import BadInput, CliError, Refused
from cli.input.arguments import AsJson, Data, Limit
from cli.text.output import emit, report_line, table
from cli.text.times import clock

secrets = typer.Typer(
    no_args_is_help=True,
    help="Secrets of tenants: create, set, list, delete, import, add-key, rotate.",
)

Name = Annotated[str, typer.Argument(help="Name of the secret.", metavar="NAME")]
Tenant = Annotated[
    str | None, typer.Option(help="Its tenant; that of the key if not given.", metavar="TENANT")
]


@secrets.command("set")
def set_(
    name: Name,
    tenant: Tenant = None,
    from_file: Annotated[
        Path | None, typer.Option(help="File with the value; else it is typed, or read from stdin.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Set a secret: text of at most 32 KiB, without line ends at its end."""
    receipt = _put(api(data), name, tenant, _read_value(name, from_file))
    report(as_json, receipt, f"{receipt['tenant']}/{name}: version {receipt['version']}")


secrets.command("create", help="Set a secret, as `set` does.")(set_)


@secrets.command("list")
def list_(
    tenant: Tenant = None, limit: Limit = 1000, as_json: AsJson = False, data: Data = None
) -> None:
    """List secrets: tenant, name, version, when and by whom it was set, and the key it is under."""
    rows = pages(api(data), "/v1/secrets", {"tenant": tenant}, limit)
    if as_json:
        emit(rows)
        return
    columns = ("TENANT", "NAME", "VERSION", "SET", "BY", "KEY")
    names = ("set_by", "key_id")
    cells = (
        (row["tenant"], row["name"], row["version"], clock(row["set_at"]), *(row[n] for n in names))
        for row in rows
    )
    table(columns, cells, "no secrets")


@secrets.command()
def delete(name: Name, tenant: Tenant = None, as_json: AsJson = False, data: Data = None) -> None:
    """Delete a secret: a job that names it fails at its next start."""
    report(as_json, api(data).delete(_path(name), {"tenant": tenant}), f"{name}: deleted")


@secrets.command("import")
def import_(
    folder: Annotated[Path, typer.Argument(help="Folder of files TENANT/NAME.", metavar="DIR")],
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Set a secret from each file of a folder, as earlier releases read them (BERTH_SECRETS)."""
    client, receipts, failed = api(data), list[Json](), 0
    for path in _files_of(folder):
        tenant, name = path.parent.name, path.name
        try:
            receipts.append(_put(client, name, tenant, text_of_file(path)))
        except CliError as error:
            failed += 1
            report_line(f"{tenant}/{name}: {error}")
    names = (f"{row['tenant']}/{row['name']}: version {row['version']}" for row in receipts)
    report(as_json, {"set": receipts, "failed": failed}, *names)
    if failed:
        raise Refused(f"{failed} of {failed + len(receipts)} files were not imported")


@secrets.command("add-key")
def add_key(
    file: Annotated[Path, typer.Argument(help="File of keys, on this machine.", metavar="FILE")],
    as_json: AsJson = False,
) -> None:
    """Put a new key at the beginning of a file of keys; `rotate` brings the secrets under it."""
    from shared.secrets.secret_keys import KeysUnusable
    from shared.secrets.secret_keys import add_key as add

    try:
        key_id = add(file)
    except (KeysUnusable, OSError) as error:
        raise BadInput(str(error)) from None
    report(
        as_json, {"key_id": key_id}, f"{key_id}: encrypts from now on; then: berth secrets rotate"
    )


@secrets.command()
def rotate(as_json: AsJson = False, data: Data = None) -> None:
    """Bring all secrets under the first key of the gateway's file of keys."""
    client, rewrapped = api(data), 0
    while True:
        receipt = client.post("/v1/secrets/rotate")
        done = int(str(receipt["rewrapped"]))
        rewrapped += done
        if not receipt["left"] or not done:
            break
    receipt = {**receipt, "rewrapped": rewrapped}
    text = f"{receipt['key_id']}: {rewrapped} secrets brought under it, {receipt['left']} left"
    report(as_json, receipt, text)
    if lost := receipt["lost"]:
        raise Refused(f"no key of the file decrypts these, set them again: {_names(lost)}")


def _put(client: Api, name: str, tenant: str | None, value: str) -> Json:
    return client.put(_path(name), {"value": value}, {"tenant": tenant})


def _path(name: str) -> str:
    return f"/v1/secrets/{part(name)}"


def _read_value(name: str, file: Path | None) -> str:
    """Return the value of a file, of stdin, or as typed twice without an echo."""
    if file is not None:
        return text_of_file(file)
    if not sys.stdin.isatty():
        try:
            return sys.stdin.read().rstrip("\r\n")
        except UnicodeDecodeError:
            raise BadInput("stdin: not UTF-8") from None
    value = getpass.getpass(f"value of {name}: ")
    if getpass.getpass("again: ") != value:
        raise BadInput("the two values differ")
    return value


def text_of_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


def _files_of(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.glob("*/*") if not path.is_dir())
    if not files:
        raise BadInput(f"{folder}: no file TENANT/NAME")
    return files


def _names(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
