"""Old versions of a message are converted to the newest."""

from __future__ import annotations

import pytest

from shared.contracts.codec import decode_event
from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured
from shared.contracts.upcast import Payload, Upcaster, UpcastError, upcast


def hours_to_seconds(payload: Payload) -> Payload:
    hours = payload["hours"]
    assert isinstance(hours, int)
    return {"time_s": hours * 3600}


def rename(payload: Payload) -> Payload:
    return {"duration_s": payload["time_s"]}


CHAIN: dict[str, tuple[str, Upcaster]] = {
    "job.ran.v1": ("job.ran.v2", hours_to_seconds),
    "job.ran.v2": ("job.ran.v3", rename),
}


@pytest.mark.parametrize(
    ("name", "data"), [("job.ran.v1", b'{"hours":2}'), ("job.ran.v2", b'{"time_s":7200}')]
)
def test_every_old_version_is_converted_to_the_newest(name: str, data: bytes) -> None:
    assert upcast(name, data, CHAIN) == ("job.ran.v3", b'{"duration_s":7200}')


def test_the_newest_version_is_not_parsed() -> None:
    assert upcast("job.ran.v3", b"not json", CHAIN) == ("job.ran.v3", b"not json")


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_invalid_old_data_is_an_error(data: bytes) -> None:
    with pytest.raises(UpcastError, match=r"job\.ran\.v1"):
        upcast("job.ran.v1", data, CHAIN)


def test_an_endpoint_with_an_emulated_engine_becomes_one_without_engines() -> None:
    old = b'{"endpoint":"chat","partition":2,"tokens_per_s":50.0,"batch_tokens":4096}'
    event = decode_event("endpoint.configured.v1", old)
    assert event == EndpointConfigured(endpoint="chat", partition=2, batch_tokens=4096)
    name, data = upcast("endpoint.configure.v1", old.replace(b'"partition":2,', b""))
    assert name == ConfigureEndpoint.TYPE
    assert ConfigureEndpoint.model_validate_json(data).batch_tokens == 4096
