"""A loop that ends leaves no socket of a TLS connection that was closed."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import warnings
from pathlib import Path

import pytest

from infra.security import certificates
from tests.event_loop import EventLoop


def silent_server(folder: Path) -> tuple[socket.socket, ssl.SSLContext]:
    """Return a listening socket whose TLS connections never confirm a close."""
    certificates.make(folder)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "api.crt", folder / "api.key")
    return socket.create_server(("127.0.0.1", 0)), server


@pytest.mark.parametrize("loop_type", [EventLoop, asyncio.SelectorEventLoop])
def test_a_closed_connection_leaves_no_socket(
    loop_type: type[asyncio.SelectorEventLoop], tmp_path: Path
) -> None:
    listening, context = silent_server(tmp_path)
    port = listening.getsockname()[1]
    accepted: list[ssl.SSLSocket] = []

    def accept() -> None:
        plain, _ = listening.accept()
        accepted.append(context.wrap_socket(plain, server_side=True))

    async def use() -> None:
        trust = ssl.create_default_context(cafile=tmp_path / "ca.crt")
        accepting = asyncio.create_task(asyncio.to_thread(accept))
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        await accepting
        writer.close()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with asyncio.Runner(loop_factory=loop_type) as runner:
            runner.run(use())
        gc.collect()
    for each in (listening, *accepted):
        each.close()
    unclosed = [str(each.message) for each in caught if "_SelectorSocketTransport" in str(each)]
    assert bool(unclosed) == (loop_type is not EventLoop)
