"""A body keeps its values byte for byte; only its model is replaced."""

from __future__ import annotations

import msgspec

from services.throttle.upstreams.body import BodyEncoder

BODY = {"model": msgspec.Raw(b'"a"'), "x": msgspec.Raw(b'{"b" : 1.00}'), "stream": True}


def test_raw_values_stay_as_they_are() -> None:
    assert BodyEncoder(BODY).encode(None) == b'{"model":"a","x":{"b" : 1.00},"stream":true}'


def test_the_model_of_an_upstream_replaces_that_of_the_client() -> None:
    encoder = BodyEncoder(BODY)
    assert encoder.encode("there/B").startswith(b'{"model":"there/B","x":{"b" : 1.00}')
    assert encoder.encode("there/B") is encoder.encode("there/B")
    assert encoder.encode(None).startswith(b'{"model":"a"')
    assert BODY["model"] == msgspec.Raw(b'"a"')


def test_an_adapter_keeps_its_name() -> None:
    for model in (msgspec.Raw(b'"lora/a"'), "lora/a"):
        encoder = BodyEncoder({"model": model}, frozenset({"lora/a"}))
        assert encoder.encode("there/B") == b'{"model":"lora/a"}'
    assert BodyEncoder(BODY, {"lora/a"}).encode("there/B").startswith(b'{"model":"there/B"')
