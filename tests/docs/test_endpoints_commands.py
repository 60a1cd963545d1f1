"""The commands and programs of the page on LLM endpoints run, one after the other, as they are."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from cli.commands import endpoints as verbs
from cli.errors import NotFound
from cli.main import app
from infra.security import certificates
from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured, Upstream
from shared.contracts.llm import LlmRequestFinished
from shared.contracts.updates import UpdateEndpoint
from tests.docs.test_commands import commands_of
from tests.pages import blocks
from tests.patience import PATIENCE_S, until
from tests.services.throttle.proxy.test_serve import engine
from tests.services.throttle.shell import KEY, MODEL, ThrottleStack

PAGE = Path(__file__).parents[2] / "docs" / "endpoints.md"
VERBS = [words for words in commands_of(PAGE, "berth") if words[0] == "endpoints"]


def block(language: str, marker: str) -> str:
    """Return the page's block of that language with the marker."""
    (text,) = (text for text in blocks(PAGE.read_text(), language) if marker in text)
    return text


class GatewayEndpoints:
    """The endpoints of the API, by the contract of its commands."""

    def __init__(self) -> None:
        self.settings: dict[str, dict[str, Any]] = {}

    def row(self, name: str) -> dict[str, Any]:
        if name not in self.settings:
            raise NotFound("not_found")
        row = {"endpoint": name, "partition": 0, "version": "5" * 16, "open": True}
        return {**row, "settings": self.settings[name]}

    def get(self, path: str) -> dict[str, Any]:
        if path == "/v1/endpoints":
            return {"items": [self.row(name) for name in self.settings]}
        return self.row(unquote(path.removeprefix("/v1/endpoints/")))

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        command = ConfigureEndpoint.model_validate(body)
        configured = command.model_dump(mode="json", exclude={"if_version"})
        event = EndpointConfigured(**configured, partition=0)
        self.settings[command.endpoint] = event.model_dump(mode="json")
        return {"command_id": "c"}

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        name = unquote(path.removeprefix("/v1/endpoints/"))
        changes = UpdateEndpoint.model_validate({"endpoint": name, **body}).changes()
        event = EndpointConfigured.model_validate(self.settings[name])
        self.settings[name] = event.model_copy(update=changes).model_dump(mode="json")
        return {"command_id": "c"}

    def delete(self, path: str) -> dict[str, Any]:
        del self.settings[unquote(path.removeprefix("/v1/endpoints/"))]
        return {"command_id": "c"}


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> GatewayEndpoints:
    gateway = GatewayEndpoints()
    monkeypatch.setattr(verbs, "api", lambda data: gateway)
    monkeypatch.setattr(verbs, "await_answer", lambda client, receipt: receipt)
    return gateway


def run_page(gateway: GatewayEndpoints) -> EndpointConfigured:
    """Run all verbs of the page in order; return the endpoint that they made."""
    assert len(VERBS) >= 8
    for words in VERBS:
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (words, result.output)
    return EndpointConfigured.model_validate(gateway.settings[MODEL])


def test_the_verbs_of_the_page_make_what_it_says(gateway: GatewayEndpoints) -> None:
    endpoint = run_page(gateway)
    assert (endpoint.aliases, endpoint.adapters) == (("chat",), ("support-lora",))
    assert [budget.holder for budget in endpoint.budgets] == ["tenant", "user"]
    assert [str(upstream.url)[:18] for upstream in endpoint.upstreams] == [
        "http://10.0.0.1:80",
        "http://10.0.0.4:80",
    ]
    assert endpoint.retraining is not None and endpoint.retraining.freshness_s == 60
    assert not any(upstream.drained for upstream in endpoint.upstreams)
    assert sorted(gateway.settings) == ["hosted/large", MODEL]


@pytest.mark.process
async def test_the_clients_of_the_page_get_an_answer(
    tmp_path: Path, gateway: GatewayEndpoints
) -> None:
    certificates.make(tmp_path)
    files = {"tls_cert": tmp_path / "api.crt", "tls_key": tmp_path / "api.key"}
    async with engine() as (_, url):
        stack = ThrottleStack(tmp_path, url, service=files)
        made = run_page(gateway).model_copy(update={"upstreams": (Upstream(name="e", url=url),)})
        stack.access(made)
        async with stack.running():
            variables = {
                "PATH": os.environ["PATH"],
                "LLM": stack.url.replace("http://127.0.0.1", "https://localhost"),
                "KEY": KEY,
                "BERTH_CA": str(tmp_path / "ca.crt"),
                "SSL_CERT_FILE": str(tmp_path / "ca.crt"),
            }
            shell = block("sh", "$LLM/v1/chat/completions")
            outputs = [
                await output_of(["bash", "-ec", shell], variables),
                await output_of([sys.executable, "-c", block("python", "OpenAI")], variables),
            ]
            await until(lambda: stack.types().count("llm.finished.v1") == 2)
    assert all("[emulated]" in output for output in outputs), outputs
    ends = [event for event in stack.events() if isinstance(event, LlmRequestFinished)]
    assert all(event.outcome == "completed" for event in ends)


async def output_of(command: list[str], variables: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, env=variables, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-1000:]
    return out.decode()
