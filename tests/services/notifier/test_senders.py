"""Webhooks reach no address inside, follow no redirect, and wait for no answer for ever."""

from __future__ import annotations

import asyncio
import socket
from unittest.mock import patch

import pytest

from services.notifier.core.addresses import parse_networks
from services.notifier.senders import Outcome, WebhookSender
from tests.services.notifier.receivers import receiving


async def send(url: str, networks: str = "") -> Outcome:
    sender = WebhookSender(parse_networks(networks))
    try:
        return await sender.send(url, {"webhook-id": "x"}, b"{}")
    finally:
        await sender.close()


async def test_the_loopback_is_not_allowed_unless_the_operator_opens_it() -> None:
    async with receiving() as receiver:
        assert (await send(receiver.url)).error == "address not allowed for plain HTTP"
        https = receiver.url.replace("http:", "https:")
        assert (await send(https)).error == "address not allowed"
        named = https.replace("127.0.0.1", "localhost")
        assert (await send(named)).error == "address not allowed"
        assert receiver.got == []
        assert await send(receiver.url, "127.0.0.0/8") == Outcome()
        assert len(receiver.got) == 1


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:7f00:1]"])
async def test_no_spelling_of_the_loopback_is_allowed(host: str) -> None:
    async with receiving() as receiver:
        outcome = await send(receiver.url.replace("127.0.0.1", host))
        assert outcome.error and receiver.got == []


async def test_a_name_that_changes_its_address_is_judged_where_it_leads() -> None:
    """The first answer of the resolver is public, the one that the connection uses is not."""
    async with receiving() as receiver:
        port = int(receiver.url.rpartition(":")[2].partition("/")[0])
        inside = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        with patch("socket.getaddrinfo", return_value=inside):
            outcome = await send(f"https://rebinding.example.org:{port}/")
        assert (outcome.error, receiver.got) == ("address not allowed", [])


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:99999/",
        f"https://{'a' * 70}.example.org/",
        "https://xn--a.example.invalid/",
        "https://[::1",
        "https://..../",
    ],
)
async def test_an_address_that_is_none_is_an_error_of_its_attempt(url: str) -> None:
    assert (await send(url)).error


async def test_a_redirect_is_a_failure_and_not_followed() -> None:
    async with receiving() as inside, receiving(302) as receiver:
        receiver.headers["Location"] = inside.url
        assert (await send(receiver.url, "127.0.0.0/8")).error == "status 302"
        assert inside.got == [] and len(receiver.got) == 1


async def test_what_a_receiver_answers_counts_by_its_status() -> None:
    async with receiving() as receiver:
        for status, expected in ((200, Outcome()), (500, Outcome("status 500"))):
            receiver.status = status
            assert await send(receiver.url, "127.0.0.0/8") == expected
        receiver.status = 410
        assert await send(receiver.url, "127.0.0.0/8") == Outcome("status 410", is_final=True)


async def test_a_silent_receiver_ends_with_the_limit() -> None:
    with patch("services.notifier.senders.TIMEOUT_S", 0.2):
        async with receiving() as receiver:
            receiver.gate.clear()
            assert (await send(receiver.url, "127.0.0.0/8")).error == "no answer in 0.2 s"


async def test_of_a_large_answer_only_the_head_is_read() -> None:
    sent = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        try:
            while sent < 1_000_000_000:
                writer.write(b"x" * 65536)
                await writer.drain()
                sent += 65536
        except OSError:
            pass

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert await send(f"http://127.0.0.1:{port}/", "127.0.0.0/8") == Outcome()
    server.close()
    assert sent < 100_000_000


async def test_a_head_without_an_end_is_no_answer() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert "no valid answer" in (await send(f"http://127.0.0.1:{port}/", "127.0.0.0/8")).error
    server.close()
