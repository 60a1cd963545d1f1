"""An attempt that raises an unexpected error has failed, and is the only one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, MagicMock, patch

import pytest
from asyncpg import InterfaceError

from services.notifier.delivery import MAILS, Delivery, outcome_of
from services.notifier.senders import Outcome
from services.notifier.settings import NotifierSettings
from services.notifier.store import Due, FailedTarget
from shared.http.rate import TokenBuckets

ITEM = Due("t", "mail:u", "placement/0/7/0", 1000, 0, '{"subject":"s","text":"t"}')


async def attempt(folder: Path, secret: AsyncMock, failed: AsyncMock) -> None:
    settings = NotifierSettings(kafka="127.0.0.1:1", data=folder, postgres="")
    view = cast(Any, SimpleNamespace(is_active=lambda tenant: True))
    delivery = Delivery(MagicMock(), view, settings, TokenBuckets(MAILS), lambda *_: None)
    delivery._in_flight[ITEM.key] = ITEM
    with (
        patch.object(delivery, "_secret", secret),
        patch("services.notifier.store.note_failure", failed),
    ):
        try:
            await delivery._attempt(ITEM)
        finally:
            assert not delivery._in_flight
            await delivery._webhooks.close()
            await delivery._smtp.close()


async def test_an_address_that_cannot_be_made_is_given_up(tmp_path: Path) -> None:
    failed = AsyncMock(return_value=FailedTarget(0))
    await attempt(tmp_path, AsyncMock(return_value="=?x?q??=@allowed.org"), failed)
    assert failed.await_args is not None
    assert failed.await_args.args[3:] == ("no valid address", None)


async def test_an_unexpected_error_is_tried_again(tmp_path: Path) -> None:
    failed = AsyncMock(return_value=FailedTarget(0))
    with patch("services.notifier.delivery.is_too_old", return_value=False):
        await attempt(tmp_path, AsyncMock(side_effect=IndexError), failed)
    assert failed.await_args is not None
    assert failed.await_args.args[3] == "not sent: IndexError"
    assert failed.await_args.args[4] is not None


async def test_one_attempt_at_a_time_is_made_at_a_webhook_that_fails(tmp_path: Path) -> None:
    settings = NotifierSettings(kafka="127.0.0.1:1", data=tmp_path, postgres="")
    delivery = Delivery(MagicMock(), MagicMock(), settings, TokenBuckets(MAILS), lambda *_: None)
    dead = [Due("t", "dead", f"e{n}", 1000, 0, "{}", probes=True) for n in (1, 2)]
    good = [Due("t", "good", f"e{n}", 1000, 0, "{}") for n in (1, 2, 3)]
    started = list[str]()

    async def attempt(item: Due) -> None:
        started.append(item.key)
        delivery.wake.set()
        await asyncio.Event().wait()

    due = AsyncMock(side_effect=[[*dead, *good], [dead[1], good[2]], InterfaceError("closed")])
    with (
        patch.object(delivery, "_attempt", attempt),
        patch("services.notifier.store.read_due", due),
        pytest.raises(ExceptionGroup),
    ):
        await delivery.run()
    assert due.await_count == 3
    assert started == ["t/dead/e1", "t/good/e1", "t/good/e2"]


async def test_an_error_of_postgres_ends_the_session(tmp_path: Path) -> None:
    failed = AsyncMock(return_value=FailedTarget(0))
    with pytest.raises(InterfaceError):
        await attempt(tmp_path, AsyncMock(side_effect=InterfaceError("closed")), failed)
    failed.assert_not_awaited()


async def test_an_unexpected_error_is_a_failed_attempt() -> None:
    async def broken() -> Outcome:
        raise AssertionError("of a library")

    async def sent() -> Outcome:
        return Outcome()

    assert await outcome_of(broken()) == Outcome("not sent: AssertionError")
    assert await outcome_of(sent()) == Outcome()
