"""A collection of the API that is listed once, and then watched."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.api import ApiRefusal, KubernetesApi
from services.executor.engines.pauses import pause

PAGE = "500"
WATCH_S = "300"
GONE = 410
Key = tuple[str, str]
T = TypeVar("T")

log = logging.getLogger(__name__)


class WatchEnded(Exception):
    """The API does not go on from that version: the collection has to be listed again."""


class Watched(Generic[T]):
    """Objects of a collection by namespace and name, in the form that `parse` makes of each."""

    def __init__(
        self, api: KubernetesApi, path: str, parse: Callable[[Any], T], selector: str = ""
    ) -> None:
        self._api = api
        self._path = path
        self._parse = parse
        self._query = {"labelSelector": selector} if selector else {}
        self.items: dict[Key, T] = {}
        self.version = ""
        """`resourceVersion` of the present content; empty: it has to be listed."""
        self.problem = "not listed yet"
        """Why the content may be old; empty if it is not."""
        self.listed = 0
        """How often it was listed."""
        self.on_change: Callable[[T], None] | None = None
        """Takes each object that came, changed or went, after a change of the watch."""
        self._taken = 0
        """Changes and bookmarks."""

    async def run(self) -> None:
        """List and watch until cancelled, with growing pauses where that brings nothing.

        A watch that the API ends goes on from its version; one that breaks is listed anew.
        """
        in_vain = 0
        while True:
            taken = self._taken
            try:
                if not self.version:
                    await self._list()
                await self._watch()
            except WatchEnded as error:
                log.info("listed anew", extra={"path": self._path, "reason": str(error)})
                self.version = ""
            except (EngineAway, ApiRefusal, ValueError) as error:
                # The API may come back with an older state, whose versions begin again below.
                self.version = ""
                self.problem = f"{self._path}: {error}"
                log.warning("watch broke", extra={"path": self._path, "reason": str(error)})
            in_vain = 0 if self._taken > taken else in_vain + 1
            if in_vain:
                await pause(in_vain)

    async def _list(self) -> None:
        """Read the whole collection, in pages of one version."""
        items: dict[Key, T] = {}
        query = {**self._query, "limit": PAGE}
        while True:
            answer = await self._api.read(self._path, **query)
            for row in answer.get("items") or ():
                items[_key(row)] = self._parse(row)
            metadata = answer["metadata"]
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        self.items, self.version = items, str(metadata["resourceVersion"])
        self.listed += 1
        self.problem = ""

    async def _watch(self) -> None:
        """Take changes until the API ends the watch, which it does now and then."""
        query = {
            **self._query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_S,
            "resourceVersion": self.version,
        }
        async with self._api.stream(self._path, query) as response:
            self.problem = ""
            async for line in response.content:
                self._take(msgspec.json.decode(line))

    def _take(self, change: dict[str, Any]) -> None:
        self._taken += change["type"] != "ERROR"
        row = change["object"]
        if change["type"] == "ERROR":
            if row.get("code") == GONE:
                raise WatchEnded(str(row.get("message") or "too old"))
            raise EngineAway(str(row.get("message") or row))
        self.version = str(row["metadata"]["resourceVersion"])
        if change["type"] == "BOOKMARK":
            return
        item = self._parse(row)
        if change["type"] == "DELETED":
            self.items.pop(_key(row), None)
        else:
            self.items[_key(row)] = item
        if self.on_change is not None:
            self.on_change(item)


def _key(row: dict[str, Any]) -> Key:
    metadata = row["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])
