"""Shared steps of the commands: call the API, wait for the answer, print it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

from berth_client.answers import Page
from berth_client.calls import PAGE, Call
from berth_client.following import AWAY_S
from berth_client.waiting import ANSWER_S, LOOK_S
from cli.api.http import Api, Json, Query, part
from cli.api.target import target
from cli.errors import CliError, NotFound, Refused, Unreachable
from cli.text.failures import refusal_lines
from cli.text.output import emit, lines, report_line

REFUSAL_S = 2.0
"""How long a command that does not wait for its decision looks for a refusal."""


def api(data: Path | None) -> Api:
    return Api(target(data))


def pages(client: Api, path: str, query: Query, limit: int, most: int = PAGE) -> list[Json]:
    """Return at most `limit` rows of a list, by pages of `most`."""
    first = Call[Page[Json]]("GET", path, {**query, "limit": min(limit, most)})
    return list(client.pages(first, limit))


def items(page: Json) -> list[Json]:
    return cast("list[Json]", page["items"])


class Watch:
    """Polls a resource that may not exist yet, through outages of the API."""

    def __init__(self, client: Api, away_s: float = AWAY_S) -> None:
        self._client = client
        self._away_s = away_s
        self._answered_s = time.monotonic()

    def look(self, path: str) -> Json | None:
        """Return the resource, or None. Raises Unreachable after `away_s` without an answer."""
        resource: Json | None = None
        try:
            resource = self._client.get(path)
        except NotFound:
            pass
        except Unreachable:
            if time.monotonic() - self._answered_s > self._away_s:
                raise
            return None
        self._answered_s = time.monotonic()
        return resource


def await_answer(client: Api, ticket: Json) -> Json:
    """Wait for the result of a command. Raises Refused with its reason."""
    command_id = str(ticket["command_id"])
    watch = Watch(client, ANSWER_S)
    ends_s = time.monotonic() + ANSWER_S
    while (answer := watch.look(_answer_path(ticket))) is None:
        if time.monotonic() > ends_s:
            raise Unreachable(f"command {command_id} has no answer after {ANSWER_S:g} s")
        time.sleep(LOOK_S)
    return _accepted(answer)


def raise_refusal(client: Api, ticket: Json) -> None:
    """Raise Refused for a command that is refused within `REFUSAL_S`.

    One that is not decided by then, or whose answer cannot be read, goes on without a word.
    """
    ends_s = time.monotonic() + REFUSAL_S
    while time.monotonic() < ends_s:
        try:
            answer = client.get(_answer_path(ticket))
        except NotFound:
            time.sleep(LOOK_S)
        except CliError:
            return
        else:
            _accepted(answer)
            return


def _answer_path(ticket: Json) -> str:
    return f"/v1/commands/{part(str(ticket['command_id']))}"


def _accepted(answer: Json) -> Json:
    """Return the answer of an accepted command. Raises Refused with the reason of another."""
    if answer["accepted"]:
        return answer
    parts = (answer["type"], answer["reason"], answer["detail"])
    text = ": ".join(str(text) for text in parts if text)
    raise Refused("; ".join([text, *refusal_lines(answer["reason"])]))


def report_once(as_json: bool, value: object, *texts: str) -> None:
    """Print a result with a secret, and beside it that it is not shown again."""
    if not as_json:
        report_line("shown once:")
    report(as_json, value, *texts)


def report(as_json: bool, value: object, *texts: str) -> None:
    """Print a result as JSON or as lines of text."""
    if as_json:
        emit(value)
    else:
        lines(texts)
