"""Mails reach a real SMTP server, over TLS that is verified or not at all, with its login."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Literal

import pytest

from infra.security.certificates import make
from services.notifier.core.mail import message_of
from services.notifier.senders import MailSender, Outcome
from services.notifier.settings import NotifierSettings
from tests.services.notifier.receivers import SMTP_PASSWORD, SMTP_USER, mailbox

TEXT = r'{"subject":"train: failed","text":"text\n.\nmore\n"}'
ADDRESS, SENDER = "a@b.c", "berth@example.org"
LETTER = message_of(TEXT, "placement/0/7/0", 1000, SENDER, ADDRESS)
NO_STARTTLS = "SMTP: STARTTLS extension not supported by server."
NO_LOGIN = "SMTP: No suitable authentication method found."
UNTRUSTED = "SMTP: certificate not trusted"
LOGIN = {"smtp_user": SMTP_USER, "smtp_password": SMTP_PASSWORD}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make(folder)
    return folder


@pytest.fixture
def tls(certificates: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "api.crt", certificates / "api.key")
    return context


async def send(port: int, folder: Path, tls: str = "none", **more: object) -> Outcome:
    settings = NotifierSettings.model_validate(
        {
            "kafka": "127.0.0.1:1",
            "data": folder,
            "postgres": "",
            "smtp_host": "127.0.0.1",
            "smtp_port": port,
            "smtp_tls": tls,
            "mail_from": SENDER,
            **more,
        }
    )
    sender = MailSender(settings)
    try:
        return await sender.send(LETTER, ADDRESS)
    finally:
        await sender.close()


def is_private(clear: bytearray) -> bool:
    """Return whether neither mail nor login is in what went over the wire unencrypted."""
    verbs = {line.split()[0].upper() for line in bytes(clear).splitlines()}
    return verbs <= {b"EHLO", b"STARTTLS", b"QUIT"}


async def test_a_mail_goes_to_its_address_alone(tmp_path: Path) -> None:
    async with mailbox() as box:
        assert await send(box.port, tmp_path) == Outcome()
        ((origin, recipients, kept),) = box.mails
        assert (origin, recipients, kept["Subject"]) == (SENDER, [ADDRESS], "train: failed")
        assert kept.get_payload() == "text\r\n.\r\nmore\r\n"
        box.refusal = "550 no such user"
        assert await send(box.port, tmp_path) == Outcome("SMTP 550: address refused", True)
        box.refusal = "451 later"
        assert await send(box.port, tmp_path) == Outcome("SMTP 451: address refused", False)


async def test_a_server_that_is_away_is_an_error(tmp_path: Path) -> None:
    assert await send(1, tmp_path) == Outcome("SMTP: ConnectionRefusedError")


@pytest.mark.parametrize("kind", ["starttls", "implicit"])
async def test_a_mail_with_its_login_goes_over_verified_tls(
    kind: Literal["starttls", "implicit"], tls: ssl.SSLContext, certificates: Path, tmp_path: Path
) -> None:
    async with mailbox(tls, is_implicit=kind == "implicit", has_login=True) as box:
        ca = certificates / "ca.crt"
        assert await send(box.port, tmp_path, kind, smtp_ca=ca, **LOGIN) == Outcome()
        assert (len(box.mails), box.logins) == (1, [SMTP_USER])
        assert is_private(box.clear) and (b"STARTTLS" in box.clear) == (kind == "starttls")


async def test_without_starttls_nothing_is_sent_in_clear(
    certificates: Path, tmp_path: Path
) -> None:
    async with mailbox(has_login=True) as box:
        ca = certificates / "ca.crt"
        assert await send(box.port, tmp_path, "starttls", smtp_ca=ca, **LOGIN) == Outcome(
            NO_STARTTLS
        )
        assert box.mails == [] and box.clear.startswith(b"ehlo") and is_private(box.clear)


@pytest.mark.parametrize("kind", ["starttls", "implicit"])
@pytest.mark.parametrize("fault", ["another authority", "the system's authorities", "another name"])
async def test_a_certificate_that_does_not_verify_is_refused(
    kind: str, fault: str, tls: ssl.SSLContext, certificates: Path, tmp_path: Path
) -> None:
    make(tmp_path / "other")
    more: dict[str, object] = {"smtp_ca": certificates / "ca.crt", **LOGIN}
    host = "127.0.0.1"
    match fault:
        case "another authority":
            more["smtp_ca"] = tmp_path / "other" / "ca.crt"
        case "the system's authorities":
            del more["smtp_ca"]
        case _:
            more["smtp_host"] = host = "127.0.0.2"
    async with mailbox(tls, is_implicit=kind == "implicit", has_login=True, host=host) as box:
        assert await send(box.port, tmp_path, kind, **more) == Outcome(UNTRUSTED)
        assert (box.mails, box.logins) == ([], []) and is_private(box.clear)


async def test_a_login_that_is_refused_is_tried_again_and_named(
    tls: ssl.SSLContext, certificates: Path, tmp_path: Path
) -> None:
    """The operator corrects the password; the mails wait for it."""
    ca = certificates / "ca.crt"
    async with mailbox(tls, has_login=True) as box:
        wrong = {"smtp_user": SMTP_USER, "smtp_password": "wrong"}
        outcome = await send(box.port, tmp_path, "starttls", smtp_ca=ca, **wrong)
        assert outcome == Outcome("SMTP 535: login refused", is_final=False)
        assert (box.mails, box.logins) == ([], []) and is_private(box.clear)


async def test_a_server_without_a_login_gets_no_mail_of_one_who_has_to_log_in(
    tls: ssl.SSLContext, certificates: Path, tmp_path: Path
) -> None:
    async with mailbox(tls) as box:
        ca = certificates / "ca.crt"
        outcome = await send(box.port, tmp_path, "starttls", smtp_ca=ca, **LOGIN)
        assert outcome == Outcome(NO_LOGIN) and box.mails == []
