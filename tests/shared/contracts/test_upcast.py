"""Old versions of a message are converted to the newest."""

from __future__ import annotations

import pytest

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
