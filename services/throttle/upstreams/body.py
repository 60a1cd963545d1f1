"""The body of a request for each upstream: the model there replaces the one of the client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence

import msgspec

ENCODER = msgspec.json.Encoder()
MODEL_DECODER = msgspec.json.Decoder(str)


LARGE_BYTES = 1024 * 1024
"""A body above it is sent in slices of its values, so that other requests go on in between."""
SLICE_BYTES = 128 * 1024


class LargeBody:
    """A body that is never copied as a whole; it can be sent several times."""

    def __init__(self, parts: Sequence[memoryview]) -> None:
        self.size = sum(map(len, parts))
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[memoryview]:
        for part in self._parts:
            for start in range(0, len(part), SLICE_BYTES):
                yield part[start : start + SLICE_BYTES]


class BodyEncoder:
    """Encodes a body once per model; `msgspec.Raw` values are copied byte for byte."""

    def __init__(self, body: Mapping[str, object], adapters: Collection[str] = ()) -> None:
        self._body = body
        self._adapters = adapters
        self._encoded: dict[str | None, bytes | LargeBody] = {}

    def encode(self, model: str | None) -> bytes | LargeBody:
        """Return the body; without a model, or for an adapter, it names that of the client."""
        encoded = self._encoded.get(model)
        if encoded is None:
            body = dict(self._body)
            if model is not None and not self._is_for_adapter():
                body["model"] = model
            encoded = self._encoded[model] = encode_body(body)
        return encoded

    def _is_for_adapter(self) -> bool:
        if not self._adapters:
            return False
        name = self._body.get("model")
        if isinstance(name, msgspec.Raw):
            name = MODEL_DECODER.decode(name)
        return name in self._adapters


def encode_body(body: Mapping[str, object]) -> bytes | LargeBody:
    raw_bytes = sum(
        memoryview(value).nbytes for value in body.values() if isinstance(value, msgspec.Raw)
    )
    return ENCODER.encode(body) if raw_bytes < LARGE_BYTES else LargeBody(_parts(body))


def _parts(body: Mapping[str, object]) -> list[memoryview]:
    parts, before = [], b"{"
    for name, value in body.items():
        parts.append(memoryview(before + ENCODER.encode(name) + b":"))
        parts.append(
            memoryview(value)
            if isinstance(value, msgspec.Raw)
            else memoryview(ENCODER.encode(value))
        )
        before = b","
    return [*parts, memoryview(b"}")]
