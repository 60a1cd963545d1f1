"""A stream that outlives outages: when it is opened again, and which lines of it are new."""

from __future__ import annotations

import time
from collections.abc import Callable

from berth_client import answers
from berth_client.calls import Query
from berth_client.errors import BerthError
from berth_client.transport import StreamEvent

AGAIN_S = 0.5
"""Pause before a stream is opened again."""
AWAY_S = 60.0
"""Longest outage of the API that a reader of a stream, or one that waits, outlives."""
SINCE = "since"
"""Parameter with the position behind which a stream begins; empty: now."""
GAP = "; events of the time between are missing, as none came before that has a position"
Report = Callable[[str], None]


def ignore(text: str) -> None:
    """Report nothing."""


class Continuation:
    """The position in a stream, and whether it is opened again after an error."""

    def __init__(self, query: Query, report: Report, away_s: float) -> None:
        self.query = query
        self._report = report
        self._away_s = away_s
        self._answered_s: float | None = None
        self._is_away = False

    def note(self, event: StreamEvent) -> bool:
        """Take a received event; return whether it is one for the reader."""
        self._answered_s = time.monotonic()
        if self._is_away:
            is_gap = self.query.get(SINCE) == ""
            self._report("connected again" + (GAP if is_gap else ""))
            self._is_away = False
        if event.id:
            self.query = {**self.query, SINCE: event.id}
        return event.name != "alive"

    def endure(self, error: BerthError) -> None:
        """Return if the stream is to be opened again; raises the error otherwise."""
        is_over = self._answered_s is None or time.monotonic() - self._answered_s > self._away_s
        if is_over or not error.is_temporary:
            raise error
        if not self._is_away:
            self._report(f"{error.detail or error}; trying again for up to {self._away_s:g} s")
            self._is_away = True


class NewLines:
    """The lines of output that were read: a stream that is opened again begins with the oldest."""

    def __init__(self) -> None:
        self._due: dict[tuple[str, int, int], int] = {}

    def missing_before(self, line: answers.JobLine) -> int | None:
        """Return the number of lines that are missing before a new one; None for an old one.

        Before the first one of a worker only the gateway knows it: older lines may not be shown.
        """
        worker = line.get("job_id", ""), line["attempt"], line["rank"]
        number = line["line"]
        due = self._due.get(worker, 0)
        if number < due:
            return None
        self._due[worker] = number + 1
        return number - due if due else line.get("missing", 0)
