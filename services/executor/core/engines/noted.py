"""Names and notes in the folder of a gang, which nodes and executor share.

`decided` is a link that is made once: `job-REF`, the program begins in that job of the engine, or
`forbidden`, it never does. So a program runs at most once for a placement.
"""

from __future__ import annotations

import re

from services.executor.core.engines.contract import RankEnd

DECIDED = "decided"
FORBIDDEN, BEGUN = "forbidden", "job-"
"""Targets of `decided`: nothing ever begins; the job of the engine in which the program began."""
END = re.compile(rb"([0-9]{1,3}) ([0-9]{1,15}) ([0-9]{1,15}) ([a-z_]*)\s*")
NOTED_REASONS = frozenset(
    {"walltime", "command_missing", "workdir_missing", "start_failed", "step_lost"}
)


def folder_name(identity: str) -> str:
    """Return the name of the folder with the notes of a gang."""
    return identity.replace("/", "-").replace(":", "+")


def output_name(rank: int) -> str:
    return f"rank-{rank}.out"


def parse_end(line: bytes) -> RankEnd | None:
    """Return the end of a line `exit_code ran_ms ended_ms reason`, which a wrapper notes.

    None for anything else, as the tenant may write it.
    """
    match = END.fullmatch(line)
    if match is None:
        return None
    code, ran_ms, ended_ms, reason = match.groups()
    known = reason.decode() if reason.decode() in NOTED_REASONS else ""
    return RankEnd(int(code), int(ran_ms), int(ended_ms), known)
