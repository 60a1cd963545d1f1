from __future__ import annotations

import ssl
from pathlib import Path

import faust
import pytest
from aiokafka import AIOKafkaProducer

from infra.security import certificates
from shared.bus.connection import BadConnection, Connection

SECRET = "a-password-that-nobody-may-see"
PLAIN = Connection("127.0.0.1:1,127.0.0.1:2", idempotent=False)


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pems")
    certificates.make(folder)
    return folder


@pytest.fixture
def guarded(pems: Path) -> Connection:
    return Connection("127.0.0.1:1", user="placement", password=SECRET, ca=pems / "ca.crt")


def test_without_credentials_it_is_plain() -> None:
    assert PLAIN.protocol == "PLAINTEXT" and PLAIN.tls() is None
    assert PLAIN.aiokafka() == {"bootstrap_servers": "127.0.0.1:1,127.0.0.1:2"}
    assert PLAIN.kafka_python() == {"bootstrap_servers": ["127.0.0.1:1", "127.0.0.1:2"]}
    assert PLAIN.faust() == {"broker": ["kafka://127.0.0.1:1", "kafka://127.0.0.1:2"]}


def test_a_user_comes_with_scram_inside_tls_that_checks_who_answers(guarded: Connection) -> None:
    for told in (guarded.aiokafka(), guarded.kafka_python()):
        context = told.pop("ssl_context")
        assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
        assert [dict(ca["subject"][0])["commonName"] for ca in context.get_ca_certs()] == [
            certificates.CA_NAME
        ]
        told.pop("bootstrap_servers")
        assert told == {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "placement",
            "sasl_plain_password": SECRET,
        }


def test_faust_makes_of_it_what_aiokafka_takes(guarded: Connection) -> None:
    from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

    found = guarded.faust()["broker_credentials"]
    assert isinstance(found, faust.SASLCredentials)
    told, ours = dict(credentials_to_aiokafka_auth(found)), guarded.aiokafka()
    for each in (told, ours):
        assert isinstance(each.pop("ssl_context"), ssl.SSLContext)
    assert ours.pop("bootstrap_servers")
    assert told == ours


async def test_the_clients_take_what_they_are_given(guarded: Connection) -> None:
    producer = AIOKafkaProducer(**guarded.aiokafka())
    assert producer.client._sasl_plain_username == "placement"
    await producer.stop()


def test_a_certificate_of_ones_own_is_mutual_tls(pems: Path) -> None:
    root = Connection("127.0.0.1:1", ca=pems / "ca.crt", certificate=pems / "broker.pem")
    assert root.protocol == root.aiokafka()["security_protocol"] == "SSL"
    assert isinstance(root.faust()["broker_credentials"], faust.SSLCredentials)


def test_nothing_that_is_printed_holds_the_password(guarded: Connection) -> None:
    assert SECRET not in repr(guarded) + str(guarded) + f"{guarded}"
    with pytest.raises(AttributeError):
        guarded.password = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"user": "a"}, "go together"),
        ({"password": SECRET}, "go together"),
        ({"user": "a", "password": SECRET}, "CA is missing"),
        ({"certificate": Path("x.pem")}, "CA is missing"),
        ({"user": "a", "password": SECRET, "ca": Path("a"), "certificate": Path("b")}, "not both"),
    ],
)
def test_what_does_not_go_together_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(BadConnection, match=says) as refused:
        Connection("127.0.0.1:1", **fields)  # type: ignore[arg-type]
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("content", [None, b"", b"not PEM"])
def test_a_ca_file_that_is_none_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadConnection, match=r"ca\.crt: "):
        Connection("127.0.0.1:1", ca=path).aiokafka()
