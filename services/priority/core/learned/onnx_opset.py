"""Reads the opset of an ONNX file from its bytes, as the runtime does not expose it.

Protocol buffers: `ModelProto.opset_import` is field 8; in it, `domain` is field 1 (empty: ONNX's
own) and `version` field 2.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
OPSET_IMPORT, DOMAIN, VERSION = 8, 1, 2


def opset_of(model: bytes) -> int | None:
    """Return the version of ONNX's own operators, None if absent.

    Raises ValueError or IndexError if the bytes are no protocol buffer.
    """
    for number, value in _fields(model):
        if number == OPSET_IMPORT and isinstance(value, bytes):
            inside = dict(_fields(value))
            if inside.get(DOMAIN, b"") in (b"", b"ai.onnx"):
                version = inside.get(VERSION)
                return version if isinstance(version, int) else None
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == BYTES:
            length, at = _varint(data, at)
        elif wire in (FIXED64, FIXED32):
            length = 8 if wire == FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError(f"a number of more than 64 bits at byte {at}")
