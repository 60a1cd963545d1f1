"""Documents of `berth apply`: pools, tenants, quotas, users, keys, secrets, webhooks, endpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import BadInput
from cli.input.assignments import allowed_names, faults_of
from cli.input.documents import STDIN, Body, read_documents

if TYPE_CHECKING:
    from pydantic import BaseModel

NAMED: dict[str, tuple[str, ...]] = {
    "pool": ("name",),
    "tenant": ("name",),
    "quota": ("tenant", "pool"),
    "user": ("name", "tenant"),
    "key": ("name", "tenant"),
    "secret": ("name", "tenant"),
    "webhook": ("name", "tenant"),
    "endpoint": ("name",),
}
"""Fields that name an object, by kind, in the order in which kinds are applied."""
STATES = ("absent", "present")
UNDELETABLE = {"quota": "set its bounds to 0, or null for none"}
"""Kinds of which no object can be deleted, with what is possible instead."""
SECRET_SETTINGS = ("file",)
"""A value is no part of a document, which may lie in a repository."""
SIGNING_FILE = "secret_file"
"""Setting of a webhook beside its contract: the file with its signing secret."""
KEY_SETTINGS = ("role", "models")
"""Settings of a key beside its bounds."""
NO_SECRET = "0" * 64
"""A digest, so that the rules of a key without a secret can be checked."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An object as one document declares it; `settings` are all that it names, as JSON."""

    kind: str
    name: str
    owner: str
    """Tenant of a quota, user, key, secret or webhook, empty for others."""
    settings: Body
    absent: bool = False
    """Whether it is to be deleted."""

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}" + (f" of {self.owner}" if self.owner else "")


def read_manifest(path: Path, secrets: Path | None = None) -> list[Declared]:
    """Return the objects of a file in the order of their kinds. Raises BadInput with all faults.

    Files of secrets are read below `secrets` alone: the folder of the file, if it is not given.
    """
    secrets = secrets or (Path() if path == STDIN else path.parent)
    objects, faults = list[Declared](), list[str]()
    for number, document in enumerate(read_documents(path), 1):
        try:
            declared = parse_document(document, secrets)
        except BadInput as error:
            faults.append(f"document {number}{_title(document)}: {error}")
            continue
        if any((other.kind, other.name, other.owner) == _key(declared) for other in objects):
            faults.append(f"document {number}: {declared.title}: declared twice; once is allowed")
        objects.append(declared)
    if not (objects or faults):
        faults.append(f"{path}: no document; one or more are allowed")
    if faults:
        raise BadInput("; ".join(faults))
    return sorted(objects, key=_turn)


def _turn(declared: Declared) -> tuple[bool, int]:
    """Return when it is applied: what others name is made before them and deleted after them."""
    turn = list(NAMED).index(declared.kind)
    return declared.absent, -turn if declared.absent else turn


def _key(declared: Declared) -> tuple[str, str, str]:
    return declared.kind, declared.name, declared.owner


def _title(document: Body) -> str:
    parts = [str(document[name]) for name in ("kind", "name", "tenant") if name in document]
    return f" ({' '.join(parts)})" if parts else ""


def parse_document(document: Body, secrets: Path) -> Declared:
    """Return the object that a document declares. Raises BadInput with field, value and rule."""
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in NAMED:
        raise BadInput(f"kind: {kind!r}; one of {', '.join(NAMED)} is allowed")
    about = NAMED[kind]
    _check_known(document, ("kind", *about, "state", "settings"))
    for name in about:
        if not isinstance(document.get(name), str):
            raise BadInput(f"{name}: {document.get(name)!r}; a name is allowed")
    settings = document.get("settings") or {}
    if not isinstance(settings, dict):
        raise BadInput(f"settings: {settings!r}; an object is allowed")
    names = {name: str(document[name]) for name in about}
    owner = names.pop("tenant", "")
    [name] = names.values()
    if _is_absent(kind, document.get("state", "present"), settings):
        return Declared(kind, name, owner, {}, absent=True)
    return Declared(kind, name, owner, _checked(kind, name, owner, settings, secrets))


def _is_absent(kind: str, state: object, settings: Body) -> bool:
    """Return whether a document declares that there is no such object. Raises BadInput."""
    if state not in STATES:
        raise BadInput(f"state: {state!r}; one of {', '.join(STATES)} is allowed")
    if state == "present":
        return False
    if kind in UNDELETABLE:
        raise BadInput(f"state: absent: a {kind} cannot be deleted; {UNDELETABLE[kind]}")
    if settings:
        raise BadInput(f"settings: {', '.join(settings)}: must be empty with state: absent")
    return True


def _check_known(document: Body, known: tuple[str, ...]) -> None:
    for name in document:
        if name not in known:
            raise BadInput(f"{name}: unknown field; {allowed_names(name, known)}")


def _checked(kind: str, name: str, owner: str, settings: Body, secrets: Path) -> Body:
    """Return the settings with nested defaults, null being the default of a setting."""
    from shared.contracts.access import KeyBounds

    if kind == "secret":
        return _checked_secret(settings, secrets)
    model, about = _model(kind), _about(kind, name, owner)
    hidden = {"if_version", *about}
    known = tuple(sorted(model.model_fields.keys() - hidden))
    if kind == "key":
        known = (*KEY_SETTINGS, *KeyBounds.model_fields)
    if kind == "webhook":
        known = (*known, SIGNING_FILE)
    _check_known(settings, known)
    if kind == "webhook":
        return _checked_webhook(model, about, settings, secrets)
    return _by_contract(model, about, settings)


def _checked_webhook(model: type[BaseModel], about: Body, settings: Body, secrets: Path) -> Body:
    """Return the settings; the file of the signing secret is no part of the contract."""
    set_, defaults = dict(settings), _defaults(model)
    file = set_.pop(SIGNING_FILE, None)
    more = {} if file is None else {SIGNING_FILE: _file_below(SIGNING_FILE, file, secrets)}
    for name in [name for name, value in set_.items() if value is None]:
        set_[name] = defaults.get(name)
    return _by_contract(model, about, set_) | more


def _by_contract(model: type[BaseModel], about: Body, settings: Body) -> Body:
    from pydantic import ValidationError

    defaults = _defaults(model)
    try:
        checked = model.model_validate_json(json.dumps({**about, **settings}), strict=True)
    except ValidationError as error:
        raise BadInput("; ".join(faults_of(error))) from None
    dumped = checked.model_dump(mode="json", include=set(settings))
    if unknown := next(_unknown(settings, dumped, ""), None):
        raise BadInput(f"{unknown}: unknown field")
    return {key: defaults.get(key) if dumped[key] is None else dumped[key] for key in settings}


def _checked_secret(settings: Body, secrets: Path) -> Body:
    _check_known(settings, SECRET_SETTINGS)
    return {"file": _file_below("file", settings.get("file"), secrets)}


def _file_below(setting: str, file: object, secrets: Path) -> str:
    """Return the file as it lies behind all links. Raises BadInput.

    The author of a document need not be allowed to read all files of the user that applies it.
    """
    named, below = f"{setting}: {file!r}", secrets.resolve()
    if not isinstance(file, str) or "\0" in file:
        raise BadInput(f"{named}; a file that holds the value is allowed")
    path = (below / file).resolve()
    if not path.is_relative_to(below):
        raise BadInput(f"{named}: not below {below}; --secrets DIR allows another folder")
    if not path.is_file():
        raise BadInput(f"{named}: no file below {below}; one that holds the value is allowed")
    return str(path)


def _model(kind: str) -> type[BaseModel]:
    from shared.contracts.access import CreateKey
    from shared.contracts.updates import (
        UpdateEndpoint,
        UpdatePool,
        UpdateQuota,
        UpdateTenant,
        UpdateUser,
    )
    from shared.contracts.webhooks import WebhookSettings

    models: dict[str, type[BaseModel]] = {
        "pool": UpdatePool,
        "tenant": UpdateTenant,
        "quota": UpdateQuota,
        "user": UpdateUser,
        "key": CreateKey,
        "webhook": WebhookSettings,
        "endpoint": UpdateEndpoint,
    }
    return models[kind]


def _about(kind: str, name: str, owner: str) -> Body:
    """Return the fields of the contract that are no settings."""
    if kind == "key":
        return {"key_id": name, "sha256": NO_SECRET, "tenant": owner, "role": "submitter"}
    if kind == "webhook":
        return {"name": name}
    if kind == "user":
        return {"user": name, "tenant": owner}
    return {"tenant": owner} if kind == "quota" else {kind: name}


def _defaults(model: type[BaseModel]) -> Body:
    """Return the declared defaults as JSON; an update's own default is that it is unchanged."""
    from pydantic_core import to_jsonable_python

    declared: type[BaseModel] = getattr(model, "SETTINGS", model)
    return {
        name: to_jsonable_python(field.default)
        for name, field in declared.model_fields.items()
        if not field.is_required()
    }


def _unknown(raw: object, known: object, path: str) -> Iterator[str]:
    """Yield the paths of fields that the contract ignored."""
    if isinstance(raw, dict) and isinstance(known, dict):
        for name, value in raw.items():
            field = f"{path}.{name}" if path else str(name)
            if name not in known:
                yield field
            else:
                yield from _unknown(value, known[name], field)
    elif isinstance(raw, list) and isinstance(known, list):
        for index, pair in enumerate(zip(raw, known, strict=False)):
            yield from _unknown(*pair, f"{path}.{index}")
