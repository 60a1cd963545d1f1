"""`python -m services.placement.solver`: solves requests from stdin until it closes."""

from __future__ import annotations

import time

from services.placement.children import serving
from services.placement.core.solver.solve import solve
from services.placement.solver.messages import SolverReply, pack, request_of


def answer(body: bytes) -> bytes:
    request = request_of(body)
    began_s = time.perf_counter()
    solved = solve(request.instance, request.work, request.wall_s)
    return pack(SolverReply(solved, (time.perf_counter() - began_s) * 1000))


if __name__ == "__main__":
    serving.run(answer)
