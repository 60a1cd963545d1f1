"""The command that an operator copies to a node."""

from __future__ import annotations

import pytest

from cli.enrolment_commands import _join_line
from cli.http_api import Api
from cli.target import Target


@pytest.mark.parametrize(
    ("url", "ca", "end"),
    [
        ("https://10.0.0.5:8443", "/data/ca.crt", " --ca ca.crt (a copy of /data/ca.crt)"),
        ("https://berth.example", "", ""),
        ("http://127.0.0.1:8000", "", ""),
    ],
)
def test_the_command_names_the_ca_that_the_operator_trusts(url: str, ca: str, end: str) -> None:
    client = Api(Target(url, "a.b", ca))
    assert _join_line(client) == f"berth-agent join {url} --token-file FILE{end}"
