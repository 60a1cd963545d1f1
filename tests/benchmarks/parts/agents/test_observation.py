"""Observations cross the pipe of a load process."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.parts.agents.observation import Observation, decode_line, encode_line


def test_a_line_says_what_happened() -> None:
    observation = Observation("heartbeat", "node-1", 1.5, 2.0)
    line = encode_line(observation)
    assert line.endswith(b"\n") and decode_line(line) == observation


def test_another_line_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_line(b'["hello"]')
