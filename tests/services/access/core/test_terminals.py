"""Access opens terminals in pools that permit them, once no earlier release can take over."""

from __future__ import annotations

import pytest

from services.access.core.outcomes import Denial, Grant
from services.access.core.terminals import decide_terminal
from shared.contracts.access import TenantRegistered
from shared.contracts.pools import RELEASE, PoolConfigured
from shared.contracts.registry import AccessView
from shared.contracts.terminals import (
    ADMITTED_MS,
    CloseTerminal,
    OpenTerminal,
    TerminalClosed,
    TerminalOpened,
)

AT = 1_700_000_000_000
OPEN = OpenTerminal(
    terminal_id="a" * 32,
    job_id="j",
    tenant="ada",
    pool="gpu",
    worker=0,
    program="sh",
    opened_by="key:k",
    token_sha256="b" * 64,
)


def registry(release: int = RELEASE, *, terminals: bool = True) -> AccessView:
    view = AccessView()
    view.apply(TenantRegistered(tenant="ada", default_pool="gpu"))
    view.apply(PoolConfigured(partition=0, pool="gpu", release=release, terminals=terminals))
    return view


def test_an_opening_is_admitted_for_a_minute() -> None:
    outcome = decide_terminal(registry(), OPEN, AT)
    assert outcome == Grant("j", TerminalOpened(**dict(OPEN), admitted_until=AT + ADMITTED_MS))


@pytest.mark.parametrize(
    ("view", "changes", "reason"),
    [
        (registry(terminals=False), {}, "terminals_not_permitted"),
        (registry(release=0), {}, "upgrade_not_finished"),
        (registry(), {"pool": "other"}, "unknown_pool"),
        (registry(), {"tenant": "bob"}, "unknown_tenant"),
    ],
)
def test_others_are_refused(view: AccessView, changes: dict[str, object], reason: str) -> None:
    outcome = decide_terminal(view, OPEN.model_copy(update=changes), AT)
    assert isinstance(outcome, Denial) and outcome.reason == reason


def test_a_pool_of_an_earlier_release_permits_none() -> None:
    assert not PoolConfigured(partition=0, pool="gpu").terminals


def test_an_end_is_recorded() -> None:
    closed = CloseTerminal(
        terminal_id="a" * 32,
        job_id="j",
        tenant="ada",
        reason="ended",
        exit_code=3,
        open_ms=5,
        sent_bytes=1,
        received_bytes=2,
    )
    assert decide_terminal(registry(), closed, AT) == Grant("j", TerminalClosed(**dict(closed)))
