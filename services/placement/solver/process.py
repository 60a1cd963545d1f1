"""One solver process for all lanes of a service."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from services.placement.children.process import Child
from services.placement.core.solver.instance import Instance
from services.placement.solver.messages import SolverReply, SolverRequest, pack, reply_of

PROGRAM = (sys.executable, "-m", "services.placement.solver")
GRACE_S = 2.0
"""Beyond the wall limit; a process that takes longer hangs, and is killed."""


class Solver(Child):
    """The handle of the solver's process; requests are solved one after the other."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(PROGRAM, environment)

    async def solve(self, instance: Instance, work: float, wall_s: float) -> SolverReply:
        """Solve an instance; raises ChildDied, and the next call starts a new process."""
        request = SolverRequest(instance, work, wall_s)
        return reply_of(await self.answer(pack(request), wall_s + GRACE_S))
