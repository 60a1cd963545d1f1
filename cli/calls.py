"""What most commands do: ask the API, wait for a command's answer, print it one way or another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from cli.errors import NotFound, Refused, Unreachable
from cli.http_api import Api, Json, Query, part
from cli.output import emit, lines
from cli.target import target

ANSWER_S = 30.0
LOOK_S = 0.1
AWAY_S = 60.0
"""So long whoever waits for something bears an API, or its Postgres, that is away."""
PAGE = 1000


def api(data: Path | None) -> Api:
    return Api(target(data))


def pages(client: Api, path: str, query: Query, limit: int) -> list[Json]:
    """At most `limit` rows of a list, over as many pages as that takes."""
    return [row for _, row in zip(range(limit), _rows(client, path, query, limit), strict=False)]


def _rows(client: Api, path: str, query: Query, limit: int) -> Iterator[Json]:
    after: object | None = None
    while True:
        found = client.get(path, {**query, "limit": min(limit, PAGE), "after": after})
        yield from items(found)
        after = found.get("next")
        if not after:
            return


def items(found: Json) -> list[Json]:
    return cast("list[Json]", found["items"])


class Watch:
    """Asks again and again for what is not there yet, also while nobody can be asked."""

    def __init__(self, client: Api, away_s: float = AWAY_S) -> None:
        self._client = client
        self._away_s = away_s
        self._heard_s = time.monotonic()

    def look(self, path: str) -> Json | None:
        """What is there, if anything. Raises Unreachable after `away_s` without any answer."""
        found: Json | None = None
        try:
            found = self._client.get(path)
        except NotFound:
            pass
        except Unreachable:
            if time.monotonic() - self._heard_s > self._away_s:
                raise
            return None
        self._heard_s = time.monotonic()
        return found


def answered(client: Api, ticket: Json) -> Json:
    """The answer of the command's owner. Raises Refused with its reason."""
    command_id = str(ticket["command_id"])
    watch = Watch(client, ANSWER_S)
    ends_s = time.monotonic() + ANSWER_S
    while (answer := watch.look(f"/v1/commands/{part(command_id)}")) is None:
        if time.monotonic() > ends_s:
            raise Unreachable(f"command {command_id} has no answer after {ANSWER_S:g} s")
        time.sleep(LOOK_S)
    if not answer["accepted"]:
        said = (answer["type"], answer["reason"], answer["detail"])
        raise Refused(": ".join(str(each) for each in said if each))
    return answer


def report(as_json: bool, value: object, *texts: str) -> None:
    """The same fact, for a program or for a person."""
    if as_json:
        emit(value)
    else:
        lines(texts)
