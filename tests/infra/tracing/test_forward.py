"""The OTLP address before Zipkin: everything goes to both sides, nonsense to neither."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.security import certificates
from infra.tracing import forward, zipkin
from infra.tracing.__main__ import taking
from infra.tracing.forward import QUEUE_BATCHES, Forward
from infra.tracing.otlp_http import receiver
from tests.e2e.stand import eventually
from tests.infra.standins.test_build import a_request

PROTOBUF = "application/x-protobuf"


@contextmanager
def a_side(
    status: int = 200, pems: Path | None = None
) -> Iterator[tuple[str, list[tuple[bytes, str, str]]]]:
    """Something that takes batches, and what it took."""
    taken: list[tuple[bytes, str, str]] = []

    def take(body: bytes, kind: str, encoding: str) -> int:
        taken.append((body, kind, encoding))
        return status

    server = receiver(take, 0)
    if pems is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(pems / "api.pem")
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http{'s' if pems else ''}://127.0.0.1:{server.server_port}/v1/traces", taken
    finally:
        server.shutdown()
        server.server_close()


def test_a_batch_goes_to_zipkin_as_its_json_and_to_the_others_as_it_came() -> None:
    body = a_request().SerializeToString()
    with a_side() as (spans, as_json), a_side() as (other, as_came):
        take = taking(Forward(spans), [Forward(other)])
        assert take(body, PROTOBUF, "") == 200
        assert eventually(lambda: as_came) == [(body, PROTOBUF, "")]
        ((spans_read, kind, _),) = eventually(lambda: as_json)
    assert kind == "application/json"
    assert [span["name"] for span in json.loads(spans_read)] == ["place"]


def test_a_receiver_of_a_private_authority_is_trusted_if_configured(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates.make(tmp_path)
    monkeypatch.setattr(forward, "RETRY_FOR_S", 0.0)
    with a_side(pems=tmp_path) as (other, as_came):
        stranger = Forward(other)
        stranger.put((b"lost", PROTOBUF, ""))
        eventually(lambda: "CERTIFICATE_VERIFY_FAILED" in capfd.readouterr().err)
        Forward(other, str(tmp_path / "ca.crt")).put((b"kept", PROTOBUF, ""))
        assert eventually(lambda: as_came) == [(b"kept", PROTOBUF, "")]


def test_a_body_other_than_otlp_is_refused_and_not_forwarded() -> None:
    with a_side() as (spans, as_json), a_side() as (other, as_came):
        take = taking(Forward(spans), [Forward(other)])
        assert take(b"nonsense", PROTOBUF, "") == 400
        assert take(b"{}", "text/plain", "") == 400
        assert take(a_request().SerializeToString(), PROTOBUF, "") == 200
        eventually(lambda: as_came and as_json)
        assert (len(as_json), len(as_came)) == (1, 1)


def test_a_side_that_is_away_costs_batches_and_never_time() -> None:
    forward = Forward("http://127.0.0.1:1/v1/traces")
    for _ in range(QUEUE_BATCHES + 10):
        forward.put((b"", PROTOBUF, ""))
    assert forward.lost >= 9


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert zipkin.missing() == "Java 17 or later is not installed"


def test_zipkin_listens_on_its_address_only() -> None:
    words = zipkin.command(zipkin.jar(), "127.0.0.1", 9411)
    assert "--armeria.ports[0].ip=127.0.0.1" in words and "--armeria.ports[0].port=9411" in words
    with receiver(lambda *_: 200, 0) as server:
        assert server.server_address[0] == "127.0.0.1"
