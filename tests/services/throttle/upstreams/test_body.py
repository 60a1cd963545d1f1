"""A body keeps its values byte for byte; only its model is replaced."""

from __future__ import annotations

import msgspec

from services.throttle.upstreams.body import LARGE_BYTES, BodyEncoder, LargeBody

BODY = {"model": msgspec.Raw(b'"a"'), "x": msgspec.Raw(b'{"b" : 1.00}'), "stream": True}


def start_of(body: bytes | LargeBody) -> bytes:
    assert isinstance(body, bytes)
    return body[:36]


def test_raw_values_stay_as_they_are() -> None:
    assert BodyEncoder(BODY).encode(None) == b'{"model":"a","x":{"b" : 1.00},"stream":true}'


def test_the_model_of_an_upstream_replaces_that_of_the_client() -> None:
    encoder = BodyEncoder(BODY)
    assert start_of(encoder.encode("there/B")) == b'{"model":"there/B","x":{"b" : 1.00},'
    assert encoder.encode("there/B") is encoder.encode("there/B")
    assert start_of(encoder.encode(None)).startswith(b'{"model":"a"')
    assert BODY["model"] == msgspec.Raw(b'"a"')


def test_an_adapter_keeps_its_name() -> None:
    for model in (msgspec.Raw(b'"lora/a"'), "lora/a"):
        encoder = BodyEncoder({"model": model}, frozenset({"lora/a"}))
        assert encoder.encode("there/B") == b'{"model":"lora/a"}'
    other = BodyEncoder(BODY, {"lora/a"}).encode("there/B")
    assert start_of(other).startswith(b'{"model":"there/B"')


async def test_a_large_body_is_sent_in_slices_and_can_be_sent_again() -> None:
    text = b'"' + b"x" * LARGE_BYTES + b'"'
    body = BodyEncoder({**BODY, "y": msgspec.Raw(text), "n": 2}).encode("b")
    assert isinstance(body, LargeBody)
    for _ in range(2):
        sent = [bytes(piece) async for piece in body]
        whole = b"".join(sent)
        assert whole == b'{"model":"b","x":{"b" : 1.00},"stream":true,"y":' + text + b',"n":2}'
        assert len(whole) == body.size
        assert max(map(len, sent)) < LARGE_BYTES / 4
