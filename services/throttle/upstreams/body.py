"""The body of a request for each upstream: the model there replaces the one of the client."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

ENCODER = msgspec.json.Encoder()


class BodyEncoder:
    """Encodes a body once per model; `msgspec.Raw` values are copied byte for byte."""

    def __init__(self, body: Mapping[str, object]) -> None:
        self._body = body
        self._encoded: dict[str | None, bytes] = {}

    def encode(self, model: str | None) -> bytes:
        """Return the body; without a model it names the client's."""
        encoded = self._encoded.get(model)
        if encoded is None:
            body = dict(self._body)
            if model is not None:
                body["model"] = model
            encoded = self._encoded[model] = ENCODER.encode(body)
        return encoded
