"""A stream that outlives outages of the API."""

from __future__ import annotations

import time
from collections.abc import Iterator

from cli.api.answers import AWAY_S
from cli.api.http import Api, Query, StreamEvent
from cli.errors import Unreachable
from shared.progress import ReportLine

AGAIN_S = 0.5
"""Pause before a stream is opened again."""
SINCE = "since"
"""Parameter with the position behind which a stream begins; empty: now."""
GAP = "; events of the time between are missing, as none came before that has a position"


def follow(
    client: Api, path: str, query: Query, report_line: ReportLine, away_s: float = AWAY_S
) -> Iterator[StreamEvent]:
    """Yield the events of a stream up to its event `end`; one that breaks off is opened again.

    A stream whose events have ids goes on behind the last one, another begins anew: the caller
    passes over what it had. Raises Unreachable if the first attempt fails, or after `away_s`
    seconds without an answer.
    """
    answered_s: float | None = None
    is_away = False
    while True:
        try:
            for event in client.stream(path, query, alive=True):
                answered_s = time.monotonic()
                if is_away:
                    is_gap = query.get(SINCE) == ""
                    report_line("connected again" + (GAP if is_gap else ""))
                    is_away = False
                if event.id:
                    query = {**query, SINCE: event.id}
                if event.name == "alive":
                    continue
                yield event
                if event.name == "end":
                    return
        except Unreachable as error:
            if answered_s is None or time.monotonic() - answered_s > away_s:
                raise
            if not is_away:
                report_line(f"{error}; trying again for up to {away_s:g} s")
                is_away = True
        time.sleep(AGAIN_S)
