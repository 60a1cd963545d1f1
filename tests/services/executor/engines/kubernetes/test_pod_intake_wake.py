"""The intake looks when a pod comes that waits for Berth, and sends to the broker all at once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from services.executor.core.kubernetes.names import IDENTITY, RANK
from services.executor.core.kubernetes.pod_intake import Intake, Message, PodCancel
from services.executor.core.kubernetes.pods import PodSeen
from services.executor.engines.kubernetes.pod_intake import PodIntake
from services.executor.engines.kubernetes.watched import Watched
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from tests.patience import PATIENCE_S
from tests.services.executor.core.kubernetes.user_pods import user_pod

OWN = {IDENTITY: "berth:here:cloud:1/5/0", RANK: "0"}
DELETED = {"deletionTimestamp": "2026-01-01T00:01:00Z"}


def intake_of(poll_s: float = 10 * PATIENCE_S) -> tuple[PodIntake, Any]:
    """Return an intake without a cluster, and the watch whose changes it takes."""
    api: Any = None
    pods: Any = Watched(api, "/api/v1/pods", user_pod)
    settings: Any = SimpleNamespace(engine_poll_s=poll_s)
    return PodIntake(settings, api, pods, lambda: api, api), pods


@pytest.mark.parametrize(
    ("pod", "is_looked_at"),
    [
        (user_pod(), True),
        (user_pod(schedulerName="default-scheduler"), False),
        (user_pod(annotations=OWN, node="n1", phase="Running"), False),
        (user_pod(annotations=OWN, node="n1", phase="Running", metadata=DELETED), True),
    ],
)
async def test_a_pod_that_waits_or_is_deleted_has_a_look_come_soon(
    pod: PodSeen, is_looked_at: bool
) -> None:
    intake, pods = intake_of()
    pods.on_change(pod)
    assert intake._wake.is_set() is is_looked_at


async def test_without_a_change_the_next_look_comes_when_it_is_due() -> None:
    intake, _ = intake_of(poll_s=0.01)
    async with asyncio.timeout(PATIENCE_S):
        await intake._pause()
    intake, pods = intake_of()
    pods.on_change(user_pod())
    async with asyncio.timeout(PATIENCE_S):
        await intake._pause()


async def test_what_the_broker_does_not_take_holds_up_nothing_else() -> None:
    intake, _ = intake_of()
    begun: list[TP] = []

    class Broker:
        async def append(self, tp: TP, record: bytes) -> None:
            begun.append(tp)
            while len(begun) < 3:
                await asyncio.sleep(0)
            if "bob" in tp.topic:
                raise OutcomeUnknown("no answer")

    cancels = [PodCancel(tenant, f"j-{tenant}", "gone") for tenant in ("ada", "bob", "eve")]
    broker: Any = Broker()
    async with asyncio.timeout(PATIENCE_S):
        await intake._send(Intake(cancels=cancels), "cloud", broker)
    assert intake._memory.cancelled_s.keys() == {"j-ada", "j-eve"}


async def test_no_message_is_written_to_a_pod_that_was_adopted_or_removed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    intake, pods = intake_of()
    posted: list[str] = []

    async def post(pod: PodSeen, message: Message) -> None:
        posted.append(pod.name)

    monkeypatch.setattr(intake, "_post", post)
    seen = tuple(map(user_pod, ("a", "b", "c")))
    now = [user_pod("a"), user_pod("b", annotations=OWN)]
    pods.items = {pod.key: pod for pod in now}
    await intake._post_all([Message(seen, "it is in the queue")])
    assert posted == ["a"]
