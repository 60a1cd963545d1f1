"""The notifier on real parts: signatures, kills, slow receivers, tenants, mails, tests."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.hmac import HMAC

from infra.machine.process import Running
from services.notifier.core.pace import DISABLE_MS
from shared.bus.clock import now_ms
from shared.contracts.admission import ArrayAccepted, JobAdmitted
from shared.contracts.attempts import JobFailed, JobStarted, JobSucceeded
from shared.contracts.job_spec import JobSpec
from shared.contracts.webhooks import WebhookTested
from tests.patience import until
from tests.services.notifier.house import SECRET, House, house
from tests.services.notifier.receivers import mailbox, receiving

pytestmark = pytest.mark.process


@pytest.fixture
async def parts(tmp_path: Path, postgres_dir: Path, database: str) -> AsyncIterator[House]:
    async with house(tmp_path, postgres_dir, database) as parts:
        yield parts


@pytest.fixture
def notifier(parts: House) -> Iterator[Running]:
    running = parts.start()
    yield running
    running.stop()


def failed(job: str, tenant: str = "ada") -> JobFailed:
    return JobFailed(job_id=job, tenant=tenant, attempt=1, reason="exit", exit_code=3)


def verify(headers: dict[str, str], body: bytes) -> None:
    """Verify a signature as a receiver would; raises InvalidSignature."""
    signer = HMAC(base64.b64decode(SECRET.removeprefix("whsec_")), hashes.SHA256())
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode()
    signer.update(text + body)
    version, _, signature = headers["webhook-signature"].partition(",")
    assert version == "v1" and abs(int(headers["webhook-timestamp"]) - now_ms() / 1000) < 300
    signer.verify(base64.b64decode(signature))


async def test_a_state_change_arrives_signed_at_the_webhooks_of_its_tenant(
    parts: House, notifier: Running
) -> None:
    async with receiving() as ada, receiving() as eve:
        await parts.hook("ci", ada.url)
        await parts.hook("ci", eve.url, "eve")
        await parts.append("placement", JobStarted(job_id="j1", tenant="ada", attempt=1))
        await parts.append("placement", failed("j1"), failed("j2", "eve"))
        await until(lambda: len(ada.got) == len(eve.got) == 1)
        headers, body = ada.got[0]
        verify(headers, body)
        event = json.loads(body)
        assert headers["webhook-id"] == event["id"] == "placement/0/2/0"
        assert (event["type"], event["tenant"], event["pool"]) == ("job.failed.v1", "ada", "gpu")
        assert event["link"] == "https://berth.example.org/v1/jobs/j1"
        assert b"j2" not in body and b"j1" not in eve.got[0][1]
        row = await parts.reached("ci", delivered=1)
        assert (row["last_error"], row["failing_since"]) == ("", 0)
    assert SECRET not in parts.log() and "Traceback" not in parts.log()


async def test_a_kill_loses_nothing_and_repeats_only_what_was_on_its_way(parts: House) -> None:
    jobs = [f"j{number}" for number in range(40)]
    async with receiving() as receiver:
        await parts.hook("ci", receiver.url)
        receiver.gate.clear()
        first = parts.start()
        await parts.append("placement", *(failed(job) for job in jobs))
        await until(lambda: len(receiver.got) == 2)
        first.kill()
        receiver.gate.set()
        second = parts.start()
        await until(lambda: len({*receiver.ids}) == len(jobs))
        await parts.reached("ci", delivered=len(jobs))
        second.kill()
        third = parts.start()
        await parts.append("placement", failed("last"))
        await until(lambda: len({*receiver.ids}) == len(jobs) + 1)
        third.stop()
        counts = Counter(receiver.ids)
        assert sum(counts.values()) == len(jobs) + 3
        assert sorted(counts.values())[-3:] == [1, 2, 2]


async def test_a_silent_receiver_delays_no_other(parts: House, notifier: Running) -> None:
    async with receiving() as silent, receiving() as fast:
        silent.gate.clear()
        await parts.hook("silent", silent.url)
        await parts.hook("fast", fast.url)
        await parts.append("placement", *(failed(f"j{number}") for number in range(30)))
        await until(lambda: len({*fast.ids}) == 30)
        row = await parts.reached("fast", delivered=30)
        assert row["failing_since"] == 0
        assert len(silent.got) <= 30
        waiting = await parts.conn.fetchval(
            "SELECT count(*) FROM notification WHERE target = 'silent'"
        )
        assert waiting == 30


async def test_an_attempt_that_fails_is_repeated_with_the_same_id(
    parts: House, notifier: Running
) -> None:
    async with receiving(500) as receiver:
        await parts.hook("ci", receiver.url)
        await parts.append("placement", failed("j1"))
        row = await parts.reached("ci", last_error="status 500")
        assert row["failing_since"] > 0
        receiver.status = 204
        await due_now(parts)
        await parts.reached("ci", delivered=1, failing_since=0, last_error="")
        assert receiver.ids == ["placement/0/1/0"] * 2


async def test_a_webhook_that_fails_for_days_is_disabled_until_a_test_succeeds(
    parts: House, notifier: Running
) -> None:
    async with receiving(500) as receiver:
        await parts.hook("ci", receiver.url)
        await parts.append("placement", failed("j1"), failed("j2"))
        await parts.reached("ci", last_error="status 500")
        long_ago = now_ms() - DISABLE_MS
        await parts.conn.execute("UPDATE notification_target SET failing_since = $1", long_ago)
        await due_now(parts)
        await until_disabled(parts)
        assert await parts.conn.fetchval("SELECT count(*) FROM notification") == 0
        await parts.append("placement", failed("j3"))
        await parts.reached("ci", dropped=1)
        await parts.append("access", WebhookTested(tenant="ada", name="ci"))
        await parts.reached("ci", test_result="status 500")
        await until_disabled(parts)
        receiver.status = 204
        await parts.append("access", WebhookTested(tenant="ada", name="ci"))
        await parts.reached("ci", test_result="delivered", disabled_at=0)
        assert json.loads(receiver.got[-1][1])["type"] == "webhook.tested.v1"
        await parts.append("placement", failed("j4"))
        await parts.reached("ci", delivered=1)


async def due_now(parts: House) -> None:
    """Let the pauses be over, of what waits and of a webhook that fails."""
    await parts.conn.execute("UPDATE notification_target SET last_at = 0")
    await parts.conn.execute("UPDATE notification SET due_at = 0")


async def until_disabled(parts: House) -> None:
    row = await parts.reached("ci")
    while not row["disabled_at"]:
        row = await parts.reached("ci")


async def test_users_get_mails_about_their_jobs_and_one_about_an_array(parts: House) -> None:
    async with mailbox() as box:
        notifier = parts.start(
            BERTH_SMTP_HOST="127.0.0.1",
            BERTH_SMTP_PORT=str(box.port),
            BERTH_SMTP_TLS="none",
            BERTH_MAIL_FROM="berth@example.org",
            BERTH_MAIL_DOMAINS="example.org",
        )
        await parts.address("alice", "alice@example.org")
        await parts.address("mallory", "victim@elsewhere.org")
        notify = ("succeeded", "failed")
        spec = JobSpec(name="train\tx", user="alice", notify=notify)
        await parts.append(
            "admission",
            JobAdmitted(job_id="j1", tenant="ada", submitted_at=1, spec=spec),
            ArrayAccepted(job_id="a1", tenant="ada", array_size=2, spec=spec),
            *(
                JobAdmitted(
                    job_id=f"a1.{index}", tenant="ada", submitted_at=1, spec=spec, array_index=index
                )
                for index in range(2)
            ),
            JobAdmitted(
                job_id="m1",
                tenant="ada",
                submitted_at=1,
                spec=JobSpec(name="x", user="mallory", notify=notify),
            ),
        )
        ended = [JobSucceeded(job_id=f"a1.{index}", tenant="ada", attempt=1) for index in range(2)]
        await parts.append("placement", failed("j1"), *ended, failed("m1"), failed("other"))
        await until(lambda: len(box.mails) == 2)
        await parts.reached("mail:mallory", given_up=1)
        await parts.reached("mail:alice", delivered=2)
        subjects = sorted(str(mail["Subject"]) for _, _, mail in box.mails)
        assert subjects == ["train x: failed", "train x: succeeded"]
        assert {to for _, tos, _ in box.mails for to in tos} == {"alice@example.org"}
        assert await parts.conn.fetchval("SELECT count(*) FROM notification_job") == 0
        notifier.stop()
        assert "alice@example.org" not in parts.log() and "Traceback" not in parts.log()
