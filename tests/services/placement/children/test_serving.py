"""The loop of a process of placement answers each frame, and ends with the pipe."""

from __future__ import annotations

import io

from services.placement.children.frames import framed
from services.placement.children.serving import serve


def test_each_request_is_answered_in_turn_until_the_pipe_closes() -> None:
    replies = io.BytesIO()
    serve(io.BytesIO(framed(b"one") + framed(b"")), replies, lambda body: body.upper() + b"!")
    assert replies.getvalue() == framed(b"ONE!") + framed(b"!")


def test_half_a_head_is_the_end() -> None:
    replies = io.BytesIO()
    serve(io.BytesIO(framed(b"one")[:2]), replies, lambda body: body)
    assert replies.getvalue() == b""
