"""The first frame of a terminal, and frames in parts of any size."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from services.gateway.core.field_errors import InvalidBody, NotJson
from services.gateway.problem import ApiError
from services.gateway.routes.terminals import TerminalOpening, _opening
from services.gateway.terminal_relay import BadFrame, frame, frames
from shared.contracts.terminals import MAX_COMMAND_CHARS, MAX_FRAME_BYTES


async def parts(raw: bytes, size: int) -> AsyncIterator[bytes]:
    for begin in range(0, len(raw), size):
        yield raw[begin : begin + size]


async def opened(raw: bytes) -> TerminalOpening:
    return await _opening(frames(parts(raw, 7)))


@pytest.mark.parametrize("size", [1, 4, 5, 6, 1000])
async def test_frames_come_in_parts_of_any_size(size: int) -> None:
    sent = [(b"H", b"{}"), (b"I", b""), (b"I", bytes(300)), (b"E", b"")]
    raw = b"".join(frame(*one) for one in sent)
    assert [one async for one in frames(parts(raw + b"I\0", size))] == sent


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
