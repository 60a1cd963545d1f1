"""The body of a request for each upstream: the model there replaces the one of the client."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

ENCODER = msgspec.json.Encoder()
MODEL_DECODER = msgspec.json.Decoder(str)


class BodyEncoder:
    """Encodes a body once per model; `msgspec.Raw` values are copied byte for byte."""

    def __init__(self, body: Mapping[str, object], adapters: Collection[str] = ()) -> None:
        self._body = body
        self._adapters = adapters
        self._encoded: dict[str | None, bytes] = {}

    def encode(self, model: str | None) -> bytes:
        """Return the body; without a model, or for an adapter, it names that of the client."""
        encoded = self._encoded.get(model)
        if encoded is None:
            body = dict(self._body)
            if model is not None and not self._is_for_adapter():
                body["model"] = model
            encoded = self._encoded[model] = ENCODER.encode(body)
        return encoded

    def _is_for_adapter(self) -> bool:
        if not self._adapters:
            return False
        name = self._body.get("model")
        if isinstance(name, msgspec.Raw):
            name = MODEL_DECODER.decode(name)
        return name in self._adapters
