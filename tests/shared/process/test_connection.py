from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from infra.security import certificates
from shared.process.connection import BadConnection, Connection

SECRET = "a-password-that-must-not-leak"
PLAIN = Connection("127.0.0.1:1,127.0.0.1:2", idempotent=False)


@pytest.fixture
def guarded(pems: Path) -> Connection:
    return Connection("127.0.0.1:1", user="placement", password=SECRET, ca=pems / "ca.crt")


def test_without_credentials_the_connection_is_plain() -> None:
    assert PLAIN.protocol == "PLAINTEXT" and PLAIN.tls() is None
    assert PLAIN.aiokafka() == {"bootstrap_servers": "127.0.0.1:1,127.0.0.1:2"}
    assert PLAIN.kafka_python() == {"bootstrap_servers": ["127.0.0.1:1", "127.0.0.1:2"]}


def test_a_user_comes_with_scram_inside_tls_that_checks_the_host(guarded: Connection) -> None:
    for arguments in (guarded.aiokafka(), guarded.kafka_python()):
        context = arguments.pop("ssl_context")
        assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
        assert [dict(ca["subject"][0])["commonName"] for ca in context.get_ca_certs()] == [
            certificates.CA_NAME
        ]
        arguments.pop("bootstrap_servers")
        assert arguments == {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "placement",
            "sasl_plain_password": SECRET,
        }


async def test_a_producer_takes_the_arguments(guarded: Connection) -> None:
    producer = AIOKafkaProducer(**guarded.producing())
    assert producer.client._sasl_plain_username == "placement"
    await producer.stop()


def test_batches_are_compressed_where_the_broker_has_a_disk(guarded: Connection) -> None:
    assert guarded.producing()["compression_type"] == "gzip"
    assert PLAIN.producing()["compression_type"] is None


def test_a_client_certificate_is_mutual_tls(pems: Path) -> None:
    root = Connection("127.0.0.1:1", ca=pems / "ca.crt", certificate=pems / "broker.pem")
    assert root.protocol == root.aiokafka()["security_protocol"] == "SSL"


def test_nothing_that_is_printed_holds_the_password(guarded: Connection) -> None:
    assert SECRET not in repr(guarded) + str(guarded) + f"{guarded}"
    with pytest.raises(AttributeError):
        guarded.password = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"user": "a"}, "go together"),
        ({"password": SECRET}, "go together"),
        ({"user": "a", "password": SECRET}, "CA is missing"),
        ({"certificate": Path("x.pem")}, "CA is missing"),
        ({"user": "a", "password": SECRET, "ca": Path("a"), "certificate": Path("b")}, "not both"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(BadConnection, match=message) as refused:
        Connection("127.0.0.1:1", **fields)  # type: ignore[arg-type]
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("content", [None, b"", b"not PEM"])
def test_an_unusable_ca_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadConnection, match=r"ca\.crt: "):
        Connection("127.0.0.1:1", ca=path).aiokafka()
