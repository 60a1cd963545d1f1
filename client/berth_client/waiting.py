"""Waiting for decisions and for the ends of jobs, with the clock of the caller."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from berth_client import answers
from berth_client.calls import Call
from berth_client.errors import BerthError
from berth_client.following import AWAY_S
from berth_client.installation import CA, KEY, InstallationAddress, find_installation

ENDED: frozenset[answers.Phase] = frozenset({"rejected", "succeeded", "failed", "cancelled"})
ANSWER_S = 30.0
"""How long a command may have no decision."""
LOOK_S = 0.1
LONGEST_PAUSE_S = 2.0
UNKNOWN_S = 30.0
"""How long a job may be unknown: its submission is accepted before the read models have it."""


def installation_of(
    url: str | None, key: str | None, ca: str | None, folder: Path | None
) -> InstallationAddress:
    """Return the one that is named, as far as it is; the rest is as `find_installation` has it."""
    if url is None:
        installation = find_installation(folder)
        return InstallationAddress(
            installation.url, key or installation.key, ca or installation.ca, installation.folder
        )
    environ = os.environ
    return InstallationAddress(
        url, environ.get(KEY, "") if key is None else key, ca or environ.get(CA, "")
    )


def is_answered(answer: Any, call: Call[Any], is_late: bool) -> bool:
    """Return whether the decision is there. Raises BerthError for a refusal, or if it is late."""
    if isinstance(answer, BerthError):
        if is_late:
            raise BerthError(0, "no_decision", f"no answer in time: {call.path}")
        return False
    if not answer["accepted"]:
        raise BerthError(409, str(answer["reason"]), str(answer["detail"]))
    return True


class JobWait:
    """The wait for the end of a job."""

    def __init__(self, job_id: str, timeout_s: float | None) -> None:
        self._job_id = job_id
        self._timeout_s = timeout_s
        self._began_s = self._answered_s = time.monotonic()
        self.pause_s = LOOK_S

    def ended(self, job: answers.JobDetail | BerthError) -> answers.JobDetail | None:
        """Return the job if it has ended. Raises TimeoutError, and the error of one that does not
        exist or that did not answer for a minute."""
        now_s = time.monotonic()
        if isinstance(job, BerthError):
            is_unknown = job.status == 404
            if now_s - self._answered_s > (UNKNOWN_S if is_unknown else AWAY_S):
                raise job
        else:
            self._answered_s = now_s
            if job["phase"] in ENDED:
                return job
        if self._timeout_s is not None and now_s - self._began_s > self._timeout_s:
            raise TimeoutError(f"job {self._job_id} has not ended after {self._timeout_s:g} s")
        self.pause_s = min(self.pause_s * 1.2, LONGEST_PAUSE_S)
        return None
