"""A mail says which job, what became of it and where to read on; no name breaks its headers."""

from __future__ import annotations

import pytest

from services.notifier.core.jobs import WatchedJob
from services.notifier.core.mail import message_of, to_mail
from shared.contracts.attempts import JobFailed, JobSucceeded
from tests.services.notifier.changes import BASE_URL, change

FAILED = JobFailed(job_id="j1", tenant="ada", attempt=2, reason="exit", exit_code=3, ran_ms=61_500)
EVIL = "train\r\nBcc: victim@example.org\r\n\r\nbuy\u2028now"


def job(name: str = "train", size: int = 1) -> WatchedJob:
    return WatchedJob("j1", "ada", "alice", name, ("failed",), size, {"failed": size})


def test_the_mail_has_the_facts_of_the_end() -> None:
    mail = to_mail(job(), change(FAILED, "placement"), "failed", BASE_URL)
    assert (mail.tenant, mail.target, mail.event_id) == ("ada", "mail:alice", "placement/0/7/0")
    message = message_of(mail.body, mail.event_id, 1000, "berth@example.org", "a@example.org")
    assert message["Subject"] == "train: failed"
    assert message["Message-ID"] == "<placement.0.7.0@example.org>"
    text = message.get_content()
    for line in ("reason: exit", "exit code: 3", "attempt: 2", "ran for: 61.5 s"):
        assert line in text.splitlines()
    assert f"{BASE_URL}/v1/jobs/j1" in text and "tenant ada, pool gpu: failed" in text


def test_the_mail_of_an_array_counts_its_jobs() -> None:
    ended = JobSucceeded(job_id="j1.4", tenant="ada", attempt=1)
    mail = to_mail(job(size=5), change(ended, "placement"), "failed", "")
    text = message_of(
        mail.body, mail.event_id, 1000, "b@example.org", "a@example.org"
    ).get_content()
    assert "failed: 5 of 5" in text.splitlines() and "array j1" in text


def test_a_name_of_several_lines_is_one_line_of_the_subject() -> None:
    mail = to_mail(job(EVIL), change(FAILED, "placement"), "failed", BASE_URL)
    message = message_of(mail.body, mail.event_id, 1000, "b@example.org", "a@example.org")
    assert message["Subject"] == "train Bcc: victim@example.org buy now: failed"
    assert message["Bcc"] is None
    assert b"\nBcc" not in bytes(message)


@pytest.mark.parametrize("address", ["a@example.org\r\nBcc: x@example.org", "=?x?q??=@example.org"])
def test_what_is_no_address_is_refused(address: str) -> None:
    mail = to_mail(job(), change(FAILED, "placement"), "failed", BASE_URL)
    with pytest.raises(ValueError):
        message_of(mail.body, "id", 1000, "b@example.org", "a@example.org\r\nBcc: x@example.org")


@pytest.mark.parametrize(
    "name",
    ["=?utf-8?q?x=0d=0aBcc=3a_v=40e.org=0d=0a=0d=0aBODY?=", "=\x00?utf-8?q?a=0d=0aBcc=3av?="],
)
def test_an_encoded_word_in_a_name_writes_no_header(name: str) -> None:
    mail = to_mail(job(name), change(FAILED, "placement"), "failed", BASE_URL)
    message = message_of(mail.body, mail.event_id, 1000, "b@example.org", "a@example.org")
    head = bytes(message).partition(b"\n\n")[0].decode()
    assert [line.partition(":")[0] for line in head.split("\n") if not line.startswith(" ")] == [
        "Subject",
        "From",
        "To",
        "Date",
        "Message-ID",
        "Auto-Submitted",
        "Content-Type",
        "Content-Transfer-Encoding",
        "MIME-Version",
    ]
    assert "BODY" not in bytes(message).decode().split("\n")


def test_an_address_with_an_encoded_word_is_refused() -> None:
    mail = to_mail(job(), change(FAILED, "placement"), "failed", BASE_URL)
    with pytest.raises(ValueError):
        message_of(mail.body, "id", 1000, "b@example.org", "=?utf-8?q?x=0d=0aBcc=3av?=@example.org")
