"""The API over TLS."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from cli.api.http import Api
from cli.api.target import Target
from cli.errors import BadInput, Unreachable
from infra.security import certificates
from tests.services.gateway.stack import KEYS, Stack, as_gateway, ready, start_gateway


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    certificates.make(made)
    return made


@pytest.fixture(scope="module")
def url(stack: Stack, folder: Path) -> Iterator[str]:
    running, http = start_gateway(
        folder,
        stack.kafka,
        as_gateway(stack.dsn),
        BERTH_TLS_CERT=str(folder / "api.crt"),
        BERTH_TLS_KEY=str(folder / "api.key"),
    )
    url = http.replace("http:", "https:")
    asyncio.run(ready(url, ssl.create_default_context(cafile=folder / "ca.crt")))
    yield url
    running.stop()


def test_the_command_line_trusts_the_given_authority(url: str, folder: Path) -> None:
    key = KEYS["op"]
    assert Api(Target(url, key, str(folder / "ca.crt"))).get("/health") == {"status": "ok"}
    with pytest.raises(Unreachable, match="certificate verify failed"):
        Api(Target(url, key)).get("/health")
    with pytest.raises(BadInput, match="No such file"):
        Api(Target(url, key, str(folder / "absent"))).get("/health")
    content = subprocess.run(
        [sys.executable, "-m", "cli", "--ca", str(folder / "ca.crt"), "queue", "--json"],
        env={**os.environ, "BERTH_URL": url, "BERTH_KEY": key},
        capture_output=True,
        text=True,
        check=False,
    )
    assert content.returncode == 0 and content.stdout.startswith("["), content.stderr


async def test_plain_http_is_not_spoken_where_tls_is(url: str, folder: Path) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(url.replace("https:", "http:") + "/health")
        old = ssl.create_default_context(cafile=folder / "ca.crt")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
        async with session.get(url + "/health", ssl=old) as answer:
            assert answer.status == 200
