"""The gateway is away: jobs on nodes go on, and its clients repeat what they want."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.parts.chaos.faults import paused
from infra.supervisor import supervise
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.identity import derive_job_id
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.ledger.partition import TP
from tests.e2e.agents.jobs import POOL, Waiting, berth, is_alive
from tests.e2e.distant_gateway import (
    DistantGateway,
    Fault,
    Following,
    a_distant_gateway,
    a_newcomer,
    joining,
    renewing,
)
from tests.e2e.joined import JoinedNode
from tests.e2e.stand import Stand, a_command, eventually

pytestmark = pytest.mark.stack

AWAY = re.compile("no_answer: |is not reachable: |starting: |_unavailable: ")
"""In errors of clients while the gateway is away, or starts."""


@pytest.fixture(scope="module")
def gateway(stand: Stand) -> Iterator[DistantGateway]:
    with a_distant_gateway(stand) as gateway:
        yield gateway


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("paused", marks=pytest.mark.parts),
        "killed",
        pytest.param("cut", marks=pytest.mark.parts),
    ],
)
def test_a_gateway_that_is_away_is_missed_by_its_clients_alone(
    stand: Stand,
    node: JoinedNode,
    waiting: Waiting,
    gateway: DistantGateway,
    tmp_path: Path,
    fault: Fault,
) -> None:
    """Jobs start, run and end; clients of the gateway get errors, and repeat what they want."""
    marker, ca = tmp_path / "marker", stand.stack.ca if stand.stack.tls else None
    with (
        a_newcomer(stand, f"known-{fault}") as known,
        a_newcomer(stand, f"new-{fault}") as new,
        ExitStack() as ends,
    ):
        joining(known, gateway, token_of_one_node(stand), ca).wait()
        token, following = (
            token_of_one_node(stand),
            Following(stand, gateway, waiting.job_id, tmp_path),
        )
        ends.callback(following.close)
        lane = stand.job(waiting.job_id)["partition"]  # type: ignore[index]
        eventually(lambda: is_connected(node))
        before = node.status()
        with gateway.away(fault):
            clients = [joining(new, gateway, token, ca), renewing(known), following.to_the_end()]
            for client in clients:
                ends.enter_context(client)
            submit_without_gateway(stand, lane, ["touch", str(marker)])
            eventually(marker.exists)
            eventually(lambda: node.status()["lease_end_boot_ms"] > before["lease_end_boot_ms"])
            eventually(lambda: is_connected(node))
            for name in ("pid", "incarnation"):
                assert node.status()[name] == before[name]
            if fault == "killed":
                eventually(lambda: all(client.complaints for client in clients))
        waiting.ends()
        for client in clients:
            client.wait()
            assert all(AWAY.search(line) for line in client.complaints), client.complaints
        assert [line.split()[-1] for line in following.lines()] == ["started", "enough"]
        work(stand, known, new)


def test_a_join_that_was_accepted_without_an_answer_is_repeated(
    stand: Stand, gateway: DistantGateway
) -> None:
    """Its token allows one node, and the control plane knows the node before the node does."""
    data, token = stand.stack.data_dir, token_of_one_node(stand)
    with a_newcomer(stand, "unanswered") as new, ExitStack() as ends:
        with paused(supervise.pid_of(data, "access")):
            sent = commands_to_access(stand)
            client = joining(new, gateway, token, stand.stack.ca if stand.stack.tls else None)
            ends.enter_context(client)
            eventually(lambda: commands_to_access(stand) > sent)
            with gateway.away("killed"):
                eventually(lambda: client.complaints)
        client.wait()
        work(stand, new)


def is_connected(node: JoinedNode) -> bool:
    status = node.status()
    return bool(status.get("executor")) and not status.get("problem")


def work(stand: Stand, *nodes: JoinedNode) -> None:
    """Start the agents, which register; keep the jobs of other tests off them."""
    for node in nodes:
        node.start()
    eventually(lambda: all(is_alive(stand, node.node_id) for node in nodes))
    for node in nodes:
        berth(stand, "cordon", node.node_id)
    eventually(lambda: all((node.row() or {})["cordoned"] for node in nodes))


def token_of_one_node(stand: Stand) -> str:
    body = {"pool": POOL, "approve": True, "max_uses": 1}
    status, receipt = stand.call("POST", "/v1/nodes/tokens", body)
    assert status == 202 and stand.answer(receipt["command_id"])["accepted"], receipt
    return str(receipt["token"])


def submit_without_gateway(stand: Stand, lane: int, command: list[str]) -> None:
    """Publish the command that a gateway would publish."""
    key = str(uuid4())
    spec = JobSpec.model_validate({"name": "job", "gang": {"workers": 1}, "command": command})
    job_id = derive_job_id("ada", POOL, key)
    body = SubmitJob(job_id=job_id, tenant="ada", pool=POOL, idempotency_key=key, spec=spec)
    stand.publish("commands", lane, a_command(body))


def commands_to_access(stand: Stand) -> int:
    """Return the number of records in the commands of access."""

    async def read_end() -> int:
        log = KafkaLog(stand.stack.connection("operator"), client="e2e")
        await log.start()
        try:
            return await log.end(TP("access.commands", 0))
        finally:
            await log.stop()

    return asyncio.run(read_end())
