"""Users and clients that the guarded broker does not admit."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import ClusterAuthorizationFailedError, GroupAuthorizationFailedError

from infra.broker import topics
from infra.security import acls, certificates
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.topics import submissions, tenant_events
from shared.ledger.errors import Forbidden
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.infra.security.on_kafka.guarded_broker import MARKS, Guarded

pytestmark = MARKS


async def check_refused(connection: Connection, user: str) -> None:
    log = KafkaLog(connection)
    with pytest.raises(Forbidden, match=f"refuses {re.escape(user)}") as refused:
        await log.start()
    assert connection.password not in str(refused.value)


async def test_a_wrong_password_is_refused_and_not_shown(guarded: Guarded) -> None:
    right = guarded.connection("placement")
    await check_refused(replace(right, password=guarded.passwords["admission"]), "placement")


async def test_an_unknown_user_is_refused(guarded: Guarded) -> None:
    await check_refused(replace(guarded.connection("placement"), user="root"), "root")


async def test_a_broker_certificate_of_another_ca_is_refused(
    guarded: Guarded, tmp_path: Path
) -> None:
    certificates.make(tmp_path)
    other = replace(guarded.connection("placement"), ca=tmp_path / "ca.crt")
    await check_refused(other, "placement")


async def test_a_user_without_write_rights_gets_no_idempotent_producer(guarded: Guarded) -> None:
    producer = AIOKafkaProducer(
        **guarded.connection("verify").aiokafka(), enable_idempotence=True, acks="all"
    )
    with pytest.raises(ClusterAuthorizationFailedError):
        await producer.start()
        await producer.send_and_wait("commands", b"x", partition=0)
    await producer.stop()


async def test_a_service_cannot_join_the_group_of_another(guarded: Guarded) -> None:
    consumer = AIOKafkaConsumer(
        "placement", group_id="berth-placement", **guarded.connection("admission").aiokafka()
    )
    with pytest.raises(GroupAuthorizationFailedError):
        await consumer.start()
        await consumer.getone()
    await consumer.stop()


async def test_a_tenant_is_admitted_gets_a_new_password_and_is_removed(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    try:
        await asyncio.to_thread(
            topics.create, guarded.root, 1, False, [submissions("eve"), tenant_events("eve")]
        )
        first = replace(
            guarded.connection("tenant.ada"),
            user="tenant.eve",
            password=await asyncio.to_thread(acls.create_user, admin, "eve"),
        )
        log = KafkaLog(first)
        await log.start()
        await log.append(TP("submissions.eve", 0), b"first")
        second = replace(first, password=await asyncio.to_thread(acls.create_user, admin, "eve"))
        await check_refused(first, "tenant.eve")
        assert await asyncio.to_thread(acls.remove_user, admin, "eve")
        # The open connection has lost its rights, and a new one is refused.
        with pytest.raises(Forbidden, match="may not append"):
            await log.append(TP("submissions.eve", 0), b"no more")
        await log.stop()
        await check_refused(second, "tenant.eve")
        assert not await asyncio.to_thread(acls.remove_user, admin, "eve")
    finally:
        admin.close()
