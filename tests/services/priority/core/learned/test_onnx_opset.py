"""The opset, read from bytes of a protocol buffer."""

from __future__ import annotations

import pytest

from services.priority.core.learned.onnx_opset import opset_of


def field(number: int, wire: int, payload: bytes) -> bytes:
    size = bytes([len(payload)]) if wire == 2 else b""
    return bytes([number << 3 | wire]) + size + payload


def opset(version: int, domain: bytes = b"") -> bytes:
    return field(8, 2, field(1, 2, domain) + field(2, 0, bytes([version])))


def test_the_version_of_onnx_own_operators_counts() -> None:
    assert opset_of(opset(3, b"com.example") + opset(17)) == 17
    assert opset_of(opset(18, b"ai.onnx")) == 18


def test_other_fields_are_skipped() -> None:
    others = field(1, 0, b"\x08") + field(2, 1, b"\0" * 8) + field(3, 5, b"\0" * 4)
    assert opset_of(others + opset(15)) == 15


def test_without_an_import_there_is_no_opset() -> None:
    assert opset_of(b"") is None
    assert opset_of(opset(3, b"com.example")) is None


@pytest.mark.parametrize("data", [b"\x03", b"\x80", b"\xff" * 20])
def test_other_bytes_raise(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        opset_of(data)
