"""The CA by which the gateway checks executors."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from infra.security.certificates import make
from services.gateway.settings import GatewaySettings
from services.gateway.streams.terminal_entry import trust_of


@pytest.mark.parametrize("named", ["executor_ca", "tls_ca", "kafka_ca"])
def test_executors_are_checked_by_the_authority_of_the_servers_before_that_of_kafka(
    tmp_path: Path, named: str
) -> None:
    make(tmp_path)
    order = ("executor_ca", "tls_ca", "kafka_ca")
    later = order[order.index(named) + 1 :]
    files = {named: tmp_path / "ca.crt"} | dict.fromkeys(later, tmp_path / "missing")
    trust = trust_of(settings({name: files.get(name) for name in order}))
    assert isinstance(trust, ssl.SSLContext)
    assert len(trust.get_ca_certs()) == 1


def test_without_any_the_systems_authorities_count() -> None:
    assert trust_of(settings({"kafka_ca": None})) is True


def settings(values: dict[str, Any]) -> GatewaySettings:
    """Return settings with these values and no others but the defaults."""
    return GatewaySettings.model_construct(**values)
