"""The client of the API as the verbs use it: its errors are lines and exit codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from berth_client import Client, StreamEvent
from berth_client.calls import Call, Query, part
from berth_client.following import AWAY_S, Report, ignore
from cli.api.failures import cli_errors
from cli.api.target import Target

__all__ = ["Api", "Json", "Query", "StreamEvent", "part", "pool_field"]

Json = dict[str, object]
T = TypeVar("T")


class Api(Client):
    """A client that repeats nothing; a request without a result raises an error of `errors.py`."""

    def __init__(self, target: Target) -> None:
        with cli_errors(target.folder):
            self._connect(target, retries=0)
        # A verb sends a request or two and ends: no connection is left open.
        self._options["headers"]["Connection"] = "close"

    @property
    def url(self) -> str:
        return self.installation.url

    @property
    def ca(self) -> str:
        """File of the CA that is trusted beside the system's, empty for none."""
        return self.installation.ca

    def send(self, call: Call[T]) -> T:
        with cli_errors(self.installation.folder):
            return super().send(call)

    def stream(
        self, path: str, query: Query | None = None, *, alive: bool = False
    ) -> Iterator[StreamEvent]:
        with cli_errors(self.installation.folder):
            yield from super().stream(path, query, alive=alive)

    def follow(
        self, path: str, query: Query | None = None, report: Report = ignore, away_s: float = AWAY_S
    ) -> Iterator[StreamEvent]:
        with cli_errors(self.installation.folder):
            yield from super().follow(path, query, report, away_s)

    def get(self, path: str, query: Query | None = None) -> Json:
        return self._of("GET", path, query)

    def post(
        self, path: str, body: Mapping[str, object] | None = None, query: Query | None = None
    ) -> Json:
        return self._of("POST", path, query, body or {})

    def put(self, path: str, body: Mapping[str, object], query: Query | None = None) -> Json:
        return self._of("PUT", path, query, body)

    def patch(self, path: str, body: Mapping[str, object], query: Query | None = None) -> Json:
        return self._of("PATCH", path, query, body=body)

    def delete(self, path: str, query: Query | None = None) -> Json:
        return self._of("DELETE", path, query)

    def _of(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Mapping[str, object] | None = None,
    ) -> Json:
        answer: Json = self.send(Call[Any](method, path, query or {}, body))
        return answer


def pool_field(pool: str | None) -> Json:
    """Return the field of a body that names the pool; none without a pool."""
    return {"pool": pool} if pool else {}
