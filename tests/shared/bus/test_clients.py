"""Clients of the broker that fail inside, hang, or reach no broker: a process waits or ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest
from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError

from shared.bus import retry
from shared.bus.retry import retry_while_away
from shared.bus.stop_client import stop_client


class Client:
    """As aiokafka's consumer looks when one of its tasks was cancelled before it ran."""

    def __init__(self, *, hangs: bool) -> None:
        self._hangs = hangs
        self._client = Part()

    async def stop(self) -> None:
        if self._hangs:
            await asyncio.sleep(3600)
        raise asyncio.CancelledError


class Part:
    closed = False

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_client_that_cannot_stop_neither_blocks_nor_ends_its_caller(hangs: bool) -> None:
    client = Client(hangs=hangs)
    await stop_client(client, within_s=0.05)
    assert client._client.closed


def ends(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.process
def test_work_that_is_cancelled_without_a_request_ends_the_process() -> None:
    done = ends(
        "import asyncio\n"
        "from shared.bus.fatal import supervise\n"
        "async def dies():\n"
        "    raise asyncio.CancelledError\n"
        "async def main():\n"
        "    supervise(dies(), 'reader')\n"
        "    await asyncio.sleep(30)\n"
        "asyncio.run(main())"
    )
    assert (done.returncode, "reader" in done.stderr) == (70, True)


@pytest.mark.process
def test_a_broken_ledger_ends_the_process_with_one_line_that_names_the_runbook() -> None:
    done = ends(
        "import asyncio\n"
        "from shared.ledger.errors import TailLost\n"
        "from shared.bus.fatal import run_to_end\n"
        "async def main():\n"
        "    async with asyncio.TaskGroup() as group:\n"
        "        group.create_task(reads())\n"
        "async def reads():\n"
        "    raise TailLost('placement-0 ends at 3: tail lost')\n"
        "run_to_end(main(), 'projector')"
    )
    line = "projector stops: TailLost: placement-0 ends at 3: tail lost; see docs/operations/"
    assert done.returncode == 71
    assert done.stderr.startswith(line) and done.stderr.count("\n") == 1


@pytest.mark.process
def test_a_ledger_that_breaks_in_a_group_of_tasks_ends_the_process_as_broken() -> None:
    done = ends(
        "import asyncio\n"
        "from shared.ledger.errors import TailLost\n"
        "from shared.bus.fatal import supervise\n"
        "async def reads():\n"
        "    raise TailLost('placement-0 ends at 3: tail lost')\n"
        "async def group():\n"
        "    async with asyncio.TaskGroup() as tasks:\n"
        "        tasks.create_task(reads())\n"
        "async def main():\n"
        "    supervise(group(), 'background')\n"
        "    await asyncio.sleep(30)\n"
        "asyncio.run(main())"
    )
    assert done.returncode == 71
    assert done.stderr.startswith("background stops: TailLost: placement-0 ends at 3: tail lost")


async def test_a_broker_that_is_away_is_waited_for_with_one_line_and_a_refusal_is_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)
    answers = [KafkaConnectionError(), OSError(), KafkaConnectionError()]

    async def request() -> str:
        if answers:
            raise answers.pop()
        return "here"

    assert await retry_while_away(request, max_s=60.0) == "here"
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "the broker does not answer",
        "the broker answers again",
    ]

    async def refused() -> None:
        raise TopicAuthorizationFailedError

    with pytest.raises(TopicAuthorizationFailedError):
        await retry_while_away(refused, max_s=60.0)


async def test_the_wait_for_a_broker_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)

    async def away() -> None:
        raise KafkaConnectionError

    began = time.monotonic()
    with pytest.raises(KafkaConnectionError):
        await retry_while_away(away, max_s=0.02)
    assert time.monotonic() - began < 30
