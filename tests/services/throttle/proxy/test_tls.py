"""The proxy over TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

import aiohttp
import pytest

from infra.security import certificates
from tests.services.throttle.shell import KEY, ThrottleStack


async def test_the_proxy_accepts_only_tls_with_its_certificate(tmp_path: Path) -> None:
    certificates.make(tmp_path)
    stack = ThrottleStack(
        tmp_path, service={"tls_cert": tmp_path / "api.crt", "tls_key": tmp_path / "api.key"}
    )
    async with stack.running() as plain:
        with pytest.raises(aiohttp.ClientError):
            await plain.get("/v1/models")
        trust = ssl.create_default_context(cafile=tmp_path / "ca.crt")
        headers = {"authorization": f"Bearer {KEY}"}
        url = stack.url.replace("http:", "https:")
        async with aiohttp.ClientSession(url, headers=headers) as client:
            answer = await client.get("/v1/models", ssl=trust)
            assert (answer.status, (await answer.json())["object"]) == (200, "list")
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await client.get("/v1/models")
