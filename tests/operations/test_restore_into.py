"""A backup goes into a Kafka that runs already, whose users and topics exist, by the command."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.errors import Refused
from cli.main import app
from infra.broker import kafka, topics
from infra.machine.process import free_ports
from infra.supervisor.running import RunningStack, save
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Entry
from shared.ledger.partition import TP
from tests.broker_clients import read_to_end
from tests.shared.backup.logs import back_up, written_log

pytestmark = [
    pytest.mark.parts,
    pytest.mark.process,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]
COMMANDS = TP("commands", 0)


def stack_of(folder: Path, port: int) -> RunningStack:
    """Return the addresses as `python -m infra.kubernetes.connect` notes them."""
    folder.mkdir()
    stack = RunningStack(
        data_dir=folder,
        broker="external",
        partitions=1,
        kafka=f"127.0.0.1:{port}",
        kafka_ca=folder.parent / "kafka" / kafka.CERTIFICATES / "ca.crt",
        secrets=folder.parent / "secrets",
        postgres="",
        gateway="",
        llm="",
        otlp="",
        state=folder,
        work=folder,
        ports={},
    )
    save(stack)
    return stack


async def read(stack: RunningStack) -> list[Entry]:
    log = KafkaLog(stack.connection("verify"), client="test")
    await log.start()
    try:
        return await read_to_end(log, COMMANDS)
    finally:
        await log.stop()


def test_each_record_is_at_its_offset_and_a_broker_that_has_some_is_refused(tmp_path: Path) -> None:
    asyncio.run(back_up(written_log(3), tmp_path / "backup"))
    (port,) = free_ports(1)
    broker = kafka.start(tmp_path / "kafka", port)
    try:
        root = kafka.root(tmp_path / "kafka")
        topics.create(root, 1, True)
        topics.secure(root, tmp_path / "secrets")
        stack = stack_of(tmp_path / "stack", port)
        words = ["restore", str(tmp_path / "backup"), "--into", str(stack.data_dir)]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.exception
        assert "start the services" in done.output
        restored = asyncio.run(read(stack))
        assert [(entry.offset, entry.value) for entry in restored] == [
            (n, b"c%d" % n) for n in range(3)
        ]
        again = CliRunner().invoke(app, words).exception
        assert isinstance(again, Refused) and "not empty" in str(again)
    finally:
        broker.stop()
