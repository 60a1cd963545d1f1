"""Limits of an endpoint that its discipline keeps, and in which ways it bends the order."""

from __future__ import annotations

from dataclasses import dataclass

from services.throttle.core.disciplines.budgets import Budget


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings of `catalog`; each field says which disciplines read it."""

    tenant_per_minute: int = 120
    """Calls of a tenant: `rpm` always, `fairserve` and `berth` under overload only."""
    application_per_minute: int = 2000
    """Calls of an application: `fairserve` and `berth`, under overload only."""
    tenant_tokens_per_minute: int = 1_000_000
    """Prompt and output tokens of a tenant: `tpm`."""
    throttles: bool = False
    """Whether `berth` throttles at all under overload."""
    budgets: tuple[Budget, ...] = ()
    """Budgets that `berth` keeps, without anything used; each discipline needs its own."""
    classes: int = 1
    """Priority classes of `berth`."""
    slack: float = 0.0
    """Units of service by which `berth` lets a tenant get ahead for the sake of deadlines or
    cached prefixes; with 0 it regards neither."""
    cached_blocks: int = 0
    """Prefix blocks that the engine's cache holds: `berth`; with 0 prefixes are not regarded."""
