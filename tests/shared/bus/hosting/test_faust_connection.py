from __future__ import annotations

import ssl
from pathlib import Path

import faust
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from shared.bus.hosting.faust_connection import faust_arguments
from shared.process.connection import Connection


def test_a_plain_connection_has_an_address_per_server() -> None:
    plain = Connection("127.0.0.1:1,127.0.0.1:2", idempotent=False)
    assert faust_arguments(plain) == {"broker": ["kafka://127.0.0.1:1", "kafka://127.0.0.1:2"]}


def test_faust_hands_aiokafka_the_arguments_that_aiokafka_gets_directly(pems: Path) -> None:
    guarded = Connection("127.0.0.1:1", user="placement", password="secret", ca=pems / "ca.crt")
    credentials = faust_arguments(guarded)["broker_credentials"]
    assert isinstance(credentials, faust.SASLCredentials)
    by_faust, direct = dict(credentials_to_aiokafka_auth(credentials)), guarded.aiokafka()
    for arguments in (by_faust, direct):
        assert isinstance(arguments.pop("ssl_context"), ssl.SSLContext)
    assert direct.pop("bootstrap_servers")
    assert by_faust == direct


def test_a_client_certificate_becomes_ssl_credentials(pems: Path) -> None:
    root = Connection("127.0.0.1:1", ca=pems / "ca.crt", certificate=pems / "broker.pem")
    assert isinstance(faust_arguments(root)["broker_credentials"], faust.SSLCredentials)
