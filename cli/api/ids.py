"""Short ids: the beginning of a job's id stands for it where no other job's begins so."""

from __future__ import annotations

import re

from cli.api.answers import items
from cli.api.http import Api
from cli.errors import BadInput, NotFound

SHORT = re.compile(r"[0-9a-f]{4}[0-9a-f-]{0,31}")
"""The beginning of a UUID, 4 characters or more."""
SHOWN = 6


def job_id(client: Api, word: str) -> str:
    """Return the id of the job or array that the word is or begins, with its array index.

    A word that is no beginning of a job id is returned as it is: so are whole ids, without a
    request. Raises NotFound, and BadInput with the candidates where there are several.
    """
    stem, dot, index = word.partition(".")
    if not SHORT.fullmatch(stem):
        return word
    rows = items(client.get("/v1/submissions", {"id": stem, "limit": SHOWN + 1}))
    if not rows:
        raise NotFound(f"no job has an id that begins with {stem}")
    if len(rows) > 1:
        shown = ", ".join(f"{row['job_id']} ({row['name']})" for row in rows[:SHOWN])
        more = " and others" if len(rows) > SHOWN else ""
        raise BadInput(f"ambiguous: {stem} begins {shown}{more}; more characters are allowed")
    return f"{rows[0]['job_id']}{dot}{index}"
