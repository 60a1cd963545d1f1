"""`python -m services.placement.solver`: solves requests from stdin until it closes."""

from __future__ import annotations

import os
import sys
import time
from typing import BinaryIO

from services.placement.core.solver.solve import solve
from services.placement.solver.frames import HEAD_BYTES, SolverReply, length, pack, request_of
from shared.telemetry.json_logs import log_json, log_uncaught_errors

NICER = 5
"""The lane's own decisions have priority over the search for better ones."""


def main() -> None:
    """Run until the service closes the pipe; whatever a library prints goes to stderr."""
    log_json("placement")
    log_uncaught_errors()
    os.nice(NICER)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        serve(sys.stdin.buffer, out)
    except BrokenPipeError:
        # An ordinary end would try to write the answer once more.
        os._exit(0)


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    while len(head := requests.read(HEAD_BYTES)) == HEAD_BYTES:
        request = request_of(requests.read(length(head)))
        began_s = time.perf_counter()
        solved = solve(request.instance, request.work, request.wall_s)
        replies.write(pack(SolverReply(solved, (time.perf_counter() - began_s) * 1000)))
        replies.flush()


if __name__ == "__main__":
    main()
