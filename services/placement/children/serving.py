"""The loop of a process of placement: it answers requests from stdin until that closes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import BinaryIO

from services.placement.children.frames import HEAD_BYTES, framed, length
from shared.telemetry.json_logs import log_json, log_uncaught_errors

NICER = 5
"""The lane's own decisions have priority over the search for better ones."""

Answer = Callable[[bytes], bytes]


def run(answer: Answer) -> None:
    """Run until the service closes the pipe; whatever a library prints goes to stderr."""
    log_json("placement")
    log_uncaught_errors()
    os.nice(NICER)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        serve(sys.stdin.buffer, out, answer)
    except BrokenPipeError:
        # An ordinary end would try to write the answer once more.
        os._exit(0)


def serve(requests: BinaryIO, replies: BinaryIO, answer: Answer) -> None:
    while len(head := requests.read(HEAD_BYTES)) == HEAD_BYTES:
        replies.write(framed(answer(requests.read(length(head)))))
        replies.flush()
