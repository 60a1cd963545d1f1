"""The outcome of a command of access: the event that grants it, or a denial."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from shared.contracts.base import Event
from shared.contracts.settings_version import Versioned, version_of

NO_TENANT = "no such tenant; `berth tenants add` registers one"


class Grant(NamedTuple):
    """The event that a command leads to; None if it changes nothing. `others` follow it."""

    of: str
    event: Event | None
    others: tuple[Event, ...] = ()


class Denial(NamedTuple):
    """The refusal of a command: `reason` for machines, `detail` with field, value and rule."""

    of: str
    reason: str
    detail: str


Outcome = Grant | Denial


def deny_version(
    kind: str, name: str, existing: Versioned | None, if_version: str | None
) -> Denial | None:
    """Return the denial of a change that is based on another version of the settings."""
    version = version_of(existing)
    if if_version in (None, version):
        return None
    rule = f"{kind} {name} has version {version}; read it again and repeat the change"
    return Denial(name, "version_conflict", f"if_version: {if_version!r}: {rule}")


def deny_lane(kind: str, name: str, lanes: int, former: Collection[str] = ()) -> Denial:
    kept = f"; deleted ones count, and can be added again: {', '.join(former)}" if former else ""
    return Denial(name, "no_lane_left", f"{kind}: {name!r}: {kind} limit ({lanes}) reached{kept}")


def deny_tenant(of: str, tenant: str) -> Denial:
    return Denial(of, "unknown_tenant", f"tenant: {tenant!r}: {NO_TENANT}")
