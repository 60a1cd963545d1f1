"""Settings of pools that came with a release, and the end of the upgrade to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from shared.contracts.base import Command, command
from shared.contracts.pools import LEGACY_DEFAULTS, RELEASE, PoolConfigured, default_of

RELEASE_SETTINGS: Final[Mapping[int, tuple[str, ...]]] = {
    1: (
        "guard_predictions",
        "mitigation",
        "preemption_protection",
        "programs_once",
        "publish_predictions",
        "rank_changes",
        "use_progress",
    )
}
"""Settings by the release that made them: with another value than `LEGACY_DEFAULTS` services write
events that no earlier release can read."""
LATE_BACKENDS: Final = frozenset({"kubernetes", "ray"})
"""Backends that no earlier release can read."""

LATE_SETTINGS: Final = ("packing", "scheduler", "scheduler_shadow")
"""Settings whose default is as before; with another value services write events that no earlier
release can read, or folds as they do."""


@command
class FinishUpgrade(Command):
    """Finish the upgrade to this release: from now on an earlier one cannot take over again."""

    TYPE: ClassVar[str] = "upgrade.finish.v1"
    OWNER: ClassVar[str] = "access"


def settings_above(release: int) -> tuple[str, ...]:
    """Return the settings of later releases, by name."""
    names = (names for number, names in RELEASE_SETTINGS.items() if number > release)
    return tuple(sorted(name for group in names for name in group))


def held_settings(existing: PoolConfigured | None, release: int) -> dict[str, Any]:
    """Return the settings that a pool keeps until the upgrade is finished."""
    return {
        name: getattr(existing, name) if existing else LEGACY_DEFAULTS[name]
        for name in settings_above(release)
    }


def early_setting(held: Mapping[str, Any], named: Mapping[str, Any]) -> str | None:
    """Return why one of the named values cannot be used until the upgrade is finished."""
    for name, value in held.items():
        if (requested := named.get(name, value)) != value:
            rule = f"must be {value!r} until `berth upgrade finish`: earlier releases lack it"
            return f"{name}: {requested!r}: {rule}"
    return None


def late_backend(backends: Collection[str]) -> str | None:
    """Return why one of the backends cannot be used until the upgrade is finished."""
    if late := sorted(LATE_BACKENDS.intersection(backends)):
        rule = "is possible after `berth upgrade finish`: earlier releases lack it"
        return f"backends: {late[0]!r}: {rule}"
    return None


def late_setting(named: Mapping[str, Any]) -> str | None:
    """Return why one of the named values cannot be used until the upgrade is finished."""
    for name in LATE_SETTINGS:
        if named.get(name, default_of(name)) != default_of(name):
            rule = "is possible after `berth upgrade finish`: earlier releases lack it"
            return f"{name}: {named[name]!r}: {rule}"
    return None


def finished(pool: PoolConfigured) -> PoolConfigured:
    """Return the pool with the defaults of this release, where it has what was before them."""
    changes = {
        name: default_of(name)
        for name in settings_above(pool.release)
        if getattr(pool, name) == LEGACY_DEFAULTS[name]
    }
    return pool.model_copy(update={**changes, "release": RELEASE})
