"""The first frame of a terminal, and frames in parts of any size."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from services.gateway.core.field_errors import InvalidBody, NotJson
from services.gateway.responses.problem import ApiError
from services.gateway.routes.terminals import TerminalOpening, _opening
from services.gateway.streams import terminal_relay
from services.gateway.streams.terminal_relay import BadFrame, frame, frames
from shared.contracts.terminals import MAX_COMMAND_CHARS, MAX_FRAME_BYTES
from shared.http.rate import NS, Rate


async def parts(raw: bytes, size: int) -> AsyncIterator[bytes]:
    for begin in range(0, len(raw), size):
        yield raw[begin : begin + size]


async def opened(raw: bytes) -> TerminalOpening:
    return await _opening(frames(parts(raw, 7)))


@pytest.mark.parametrize("size", [1, 4, 5, 6, 1000])
async def test_frames_come_in_parts_of_any_size(size: int) -> None:
    sent = [(b"H", b"{}"), (b"I", bytes(300)), (b"W", bytes(4)), (b"I", b"x"), (b"E", b"")]
    raw = b"".join(frame(*one) for one in sent)
    assert [one async for one in frames(parts(raw + b"I\0", size))] == sent


async def test_input_that_comes_together_is_one_frame_and_none_is_none() -> None:
    """Each frame costs more than its bytes, so that a user could take the whole gateway."""
    empty = frame(b"I") * 1000
    raw = empty + frame(b"I", b"a") * 100 + frame(b"W", b"size") + empty + frame(b"I", b"b")
    raw += frame(b"W", b"last") + frame(b"E")
    got = [one async for one in frames(parts(raw, len(raw)))]
    assert len(got) < 8 and got[-2:] == [(b"W", b"last"), (b"E", b"")]
    assert b"".join(payload for kind, payload in got if kind == b"I") == b"a" * 100 + b"b"
    assert [one async for one in frames(parts(empty, 64))] == []


async def test_merged_input_has_the_bound_of_a_frame() -> None:
    raw = frame(b"I", bytes(40_000)) * 3
    assert [len(got) async for _, got in frames(parts(raw, len(raw)))] == [40_000] * 3


async def test_frames_above_their_rate_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(terminal_relay, "FRAMES", Rate(1000, 100))
    monkeypatch.setattr(terminal_relay, "AT_ONCE", 50)
    monkeypatch.setattr(terminal_relay, "monotonic_ns", lambda: round(sum(waits) * NS))

    async def sleep(wait_s: float) -> None:
        waits.append(wait_s)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert [one async for one in frames(parts(frame(b"I") * 1000, 500))] == []
    assert 0.8 < sum(waits) < 1.1


@pytest.mark.parametrize("size", [0, 3, 5])
async def test_a_window_has_four_bytes(size: int) -> None:
    with pytest.raises(BadFrame, match=f"window: {size} bytes; must be 4"):
        await anext(frames(parts(frame(b"W", bytes(size)), 100)))


async def test_a_frame_has_a_bound() -> None:
    raw = b"I" + (MAX_FRAME_BYTES + 1).to_bytes(4, "big")
    with pytest.raises(BadFrame, match=f"at most {MAX_FRAME_BYTES} are allowed"):
        await anext(frames(parts(raw, 100)))


async def test_the_first_frame_says_what_to_run() -> None:
    wanted = {"command": ["sh", "-c", "ls"], "worker": 2, "tty": True, "term": "xterm-256color"}
    opening = await opened(frame(b"H", json.dumps(wanted).encode()))
    assert (opening.command, opening.worker) == (("sh", "-c", "ls"), 2)
    assert (opening.rows, opening.columns) == (24, 80)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", ApiError),
        (frame(b"I", b"{}"), ApiError),
        (b"H" + (2**31).to_bytes(4, "big"), ApiError),
        (frame(b"H", b"{"), NotJson),
        (frame(b"H", b'{"command": "ls"}'), InvalidBody),
        (frame(b"H", b'{"command": ["a\\u0000"]}'), InvalidBody),
        (frame(b"H", b'{"worker": -1}'), InvalidBody),
        (frame(b"H", b'{"rows": 0}'), InvalidBody),
        (frame(b"H", b'{"term": "x\\n"}'), InvalidBody),
        (frame(b"H", b'{"user": "root"}'), InvalidBody),
        (
            frame(b"H", json.dumps({"command": ["x" * MAX_COMMAND_CHARS, "y"]}).encode()),
            InvalidBody,
        ),
    ],
)
async def test_others_are_refused(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        await opened(raw)
