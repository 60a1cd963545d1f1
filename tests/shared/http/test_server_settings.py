"""Services over HTTP are closed to a network without TLS, and report a bad certificate."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from infra.security import certificates
from services.gateway.settings import GatewaySettings
from services.throttle.settings import ThrottleSettings
from shared.http.server_settings import ServerSettings, is_loopback, server_certificate
from shared.process.settings import BadSettings, read_settings

GIVEN = {"BERTH_KAFKA": "k:1", "BERTH_DATA": "/d"}
PAIR = {"BERTH_TLS_CERT": "/c", "BERTH_TLS_KEY": "/k"}
both = pytest.mark.parametrize("model", [GatewaySettings, ThrottleSettings])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    certificates.make(made)
    return made


def given(cert: Path, key: Path) -> ServerSettings:
    return read_settings(
        ServerSettings, GIVEN | {"BERTH_TLS_CERT": str(cert), "BERTH_TLS_KEY": str(key)}
    )


@both
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "gateway", "192.168.1.1"])
def test_keys_cross_a_network_in_the_clear_only_by_an_explicit_setting(
    model: type[ServerSettings], host: str
) -> None:
    with pytest.raises(BadSettings, match="in the clear"):
        read_settings(model, GIVEN | {"BERTH_HOST": host})
    read_settings(model, GIVEN | {"BERTH_HOST": host, "BERTH_PLAIN_HTTP": "anywhere"})
    read_settings(model, GIVEN | PAIR | {"BERTH_HOST": host})
    assert not is_loopback(host)


@both
def test_the_loopback_may_be_plain_and_half_a_pair_is_refused(model: type[ServerSettings]) -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.8.9.1"):
        assert server_certificate(read_settings(model, GIVEN | {"BERTH_HOST": host})) is None
    for name, value in PAIR.items():
        with pytest.raises(BadSettings, match="together"):
            read_settings(model, GIVEN | {name: value})


def test_an_unusable_certificate_is_named_and_no_password_is_prompted_for(
    folder: Path, tmp_path: Path
) -> None:
    cert, key = folder / "api.crt", folder / "api.key"
    assert server_certificate(given(cert, key)) is not None
    with pytest.raises(BadSettings, match=r"BERTH_TLS_CERT=.*absent.*No such file"):
        server_certificate(given(folder / "absent", key))
    with pytest.raises(BadSettings, match="no PEM certificate with its key"):
        server_certificate(given(cert, folder / "broker.key"))
    loaded = serialization.load_pem_private_key(key.read_bytes(), password=None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"sesame"),
        )
    )
    with pytest.raises(BadSettings, match="no PEM certificate with its key"):
        server_certificate(given(cert, locked))
