"""An attempt that raises an unexpected error has failed, and is the only one."""

from __future__ import annotations

from services.notifier.delivery import outcome_of
from services.notifier.senders import Outcome


async def test_an_unexpected_error_is_a_failed_attempt() -> None:
    async def broken() -> Outcome:
        raise AssertionError("of a library")

    async def sent() -> Outcome:
        return Outcome()

    assert await outcome_of(broken()) == Outcome("not sent: AssertionError")
    assert await outcome_of(sent()) == Outcome()
