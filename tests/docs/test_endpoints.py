"""The pages on LLM endpoints have the settings, headers and reasons that the code has."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cli.commands.llm import llm
from services.gateway.core.submission import Sender
from services.gateway.kafka.inbound import SubmissionRecord
from services.gateway.kafka.inbound_requests import route_request
from services.throttle.proxy.options import read_options
from services.throttle.relay.errors import VERDICTS
from shared.contracts.access import TenantRegistered
from shared.contracts.endpoints import EndpointSettings
from shared.contracts.llm import ServeLlmRequest
from shared.contracts.registry import AccessView
from tests.pages import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "endpoints.md").read_text()
README = (ROOT / "services" / "throttle" / "README.md").read_text()
OPTIONS = ROOT / "services" / "throttle" / "proxy" / "options.py"


EXAMPLES = [json.loads(text) for text in blocks(PAGE, "json")]


def test_the_record_of_a_tenant_is_a_request() -> None:
    (event,) = [each for each in EXAMPLES if "specversion" in each]
    access = AccessView()
    access.apply(TenantRegistered(tenant="ada", default_pool="main"))
    record = SubmissionRecord("requests.ada", 0, 0, json.dumps(event).encode())
    command = route_request(record, Sender("ada", "main"), access).command
    assert isinstance(command, ServeLlmRequest)
    assert (command.tenant, command.application) == ("ada", "support")


def first_column(head: str) -> set[str]:
    rows = PAGE.partition(head)[2].partition("\n\n")[0].splitlines()
    return {word for row in rows for word in re.findall(r"`([\w-]+)`", row.split("|")[1])}


def test_the_settings_of_the_table_exist() -> None:
    assert first_column("| setting | meaning |\n") < EndpointSettings.model_fields.keys()


def test_the_verbs_of_the_table_exist() -> None:
    table = PAGE.partition("| command | shows |\n")[2].partition("\n\n")[0]
    verbs = set(re.findall(r"`berth llm (\w+)", table))
    commands = [command.callback for command in llm.registered_commands]
    assert verbs | {"keys"} == {command.__name__ for command in commands if command}


def test_the_headers_of_requests_are_those_that_are_read() -> None:
    read = set(re.findall(r'"(x-berth-[a-z-]+)"', OPTIONS.read_text()))
    assert read == first_column("| header of a request | meaning |\n")
    examples = dict(re.findall(r'"(x-berth-[a-z]+)": "([^"]+)"', PAGE))
    options = read_options(examples)
    assert (options.application, options.interaction) == ("support", "ticket-4711")


def test_the_readme_has_every_reason_with_its_status() -> None:
    table = README.partition("| status | reasons |\n")[2].partition("\n\n")[0]
    listed = {
        reason: {int(status) for status in re.findall(r"\d{3}", row.split("|")[1])}
        for row in table.splitlines()
        for reason in re.findall(r"`([a-z_]+)`", row.split("|")[2])
    }
    del listed["tenant_tokens"]
    assert listed.keys() == VERDICTS.keys()
    assert all(VERDICTS[reason].status in statuses for reason, statuses in listed.items())
