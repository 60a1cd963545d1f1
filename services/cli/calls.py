"""What most commands do: ask the API, wait for a command's answer, print it one way or another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from services.cli.errors import NotFound, Refused, Unreachable
from services.cli.http_api import Api, Json, Query, part
from services.cli.output import emit, lines
from services.cli.target import target

ANSWER_S = 30.0
LOOK_S = 0.1
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


def answered(client: Api, ticket: Json) -> Json:
    """The answer of the command's owner. Raises Refused with its reason."""
    command_id = str(ticket["command_id"])
    ends_s = time.monotonic() + ANSWER_S
    while (answer := _answer(client, command_id)) is None:
        if time.monotonic() > ends_s:
            raise Unreachable(f"command {command_id} has no answer after {ANSWER_S:g} s")
        time.sleep(LOOK_S)
    if not answer["accepted"]:
        said = (answer["type"], answer["reason"], answer["detail"])
        raise Refused(": ".join(str(each) for each in said if each))
    return answer


def _answer(client: Api, command_id: str) -> Json | None:
    try:
        return client.get(f"/v1/commands/{part(command_id)}")
    except NotFound:
        return None


def report(as_json: bool, value: object, *texts: str) -> None:
    """The same fact, for a program or for a person."""
    if as_json:
        emit(value)
    else:
        lines(texts)
