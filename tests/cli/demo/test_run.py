"""SIGTERM ends the demo as Ctrl-C does, also where it comes twice."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from cli.demo.run import terminated_like_interrupted
from tests.patience import PATIENCE_S


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_second_sigterm_does_not_cut_the_end_of_tasks_short() -> None:
    ended: list[str] = []

    async def run() -> None:
        try:
            terminate()
            await asyncio.sleep(PATIENCE_S)
        finally:
            terminate()
            await asyncio.sleep(0)
            ended.append("in the loop")

    with pytest.raises(KeyboardInterrupt), terminated_like_interrupted():
        asyncio.run(run())
    assert ended == ["in the loop"]


def test_sigterm_is_handled_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminated_like_interrupted():
        terminate()
    assert signal.getsignal(signal.SIGTERM) is before
