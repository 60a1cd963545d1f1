"""The text of a mail about a job. No character of a job's name ends a header."""

from __future__ import annotations

import re
from email.message import EmailMessage
from email.utils import formatdate

import msgspec

from services.notifier.core.changes import Change, Notification, job_url
from services.notifier.core.jobs import WatchedJob
from shared.contracts.state_changes import StateChange

TARGET = "mail:"
"""Begins the target of a notification that is a mail."""
SUBJECT_CHARS = 120
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
ENCODED_WORD = "=?"
"""Begins an encoded word (RFC 2047)."""
LABELS = {
    "reason": "reason",
    "detail": "detail",
    "exit_code": "exit code",
    "attempt": "attempt",
    "ran_ms": "ran for",
}


class MailText(msgspec.Struct):
    """A mail without its address, which is resolved when it is sent."""

    subject: str
    text: str


def to_mail(job: WatchedJob, change: Change, mailed: StateChange, base_url: str) -> Notification:
    """Return the mail about a state change, or about the end of an array."""
    name, noun = one_line(job.name), "array" if job.size > 1 else "job"
    url = job_url(base_url, job.job_id)
    lines = [
        f"{name}: {noun} {job.job_id} of tenant {job.tenant}, pool {change.pool}: {mailed}.",
        "",
        *(_counts(job) if job.size > 1 else _facts(change)),
        "",
        *([url] if url else []),
        f"berth why {job.job_id}",
    ]
    mail = MailText(f"{name[:SUBJECT_CHARS]}: {mailed}", "\n".join(lines) + "\n")
    return Notification(
        job.tenant,
        TARGET + job.user,
        0,
        change.event_id,
        change.at_ms,
        msgspec.json.encode(mail).decode(),
    )


def message_of(body: str, event_id: str, at_ms: int, sender: str, address: str) -> EmailMessage:
    """Return the message; it has the same id at each attempt.

    Raises ValueError for an address with a line end or an encoded word.
    """
    if ENCODED_WORD in address:
        raise ValueError("an encoded word in an address")
    mail = msgspec.json.decode(body, type=MailText)
    message = EmailMessage()
    message["Subject"] = in_header(mail.subject)
    message["From"], message["To"] = sender, address
    message["Date"] = formatdate(at_ms / 1000)
    message["Message-ID"] = f"<{event_id.replace('/', '.')}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    return message


def in_header(text: str) -> str:
    """Return the text as one line in which no encoded word begins: EmailMessage decodes those, line
    ends too."""
    return one_line(text).replace(ENCODED_WORD, "= ?")


def one_line(text: str) -> str:
    """Return the text with each control character, a line end too, as a space."""
    return CONTROL.sub(" ", text).strip()


def _counts(job: WatchedJob) -> list[str]:
    return [f"{end}: {count} of {job.size}" for end, count in sorted(job.ended.items())]


def _facts(change: Change) -> list[str]:
    facts = msgspec.json.decode(change.data, type=dict[str, object])
    lines = []
    for field, label in LABELS.items():
        value = facts.get(field)
        if value is None or (value in ("", 0) and field != "exit_code"):
            continue
        is_time = field == "ran_ms" and isinstance(value, int)
        text = f"{int(str(value)) / 1000:g} s" if is_time else one_line(str(value))
        lines.append(f"{label}: {text}")
    return lines
