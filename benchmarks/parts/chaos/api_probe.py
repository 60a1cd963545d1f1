"""A client that submits and reads through the REST API at intervals and records each status."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
import urllib.error
import urllib.request
from collections import Counter
from typing import NamedTuple

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.command import Json
from benchmarks.parts.stack import TENANT, as_record
from shared.contracts.access import CreateKey
from shared.contracts.keys import format_key, hash_secret
from shared.ledger.partition import TP

PROBE_EVERY_S = 0.25
NO_ANSWER = 0
"""Status of a request that got no answer."""


class ProbeAnswer(NamedTuple):
    """One request's time of answer, kind (`submit` or `read`) and HTTP status."""

    at: float
    kind: str
    status: int


class ApiProbe:
    """Answers of the gateway over time, and the commands that it acknowledged."""

    def __init__(self, loaded: LoadedStack, key_id: str = "chaos") -> None:
        self._loaded = loaded
        self._key_id = key_id
        self._key = ""
        self.answers: list[ProbeAnswer] = []
        self.acked: list[str] = []

    async def start(self) -> None:
        """Create an API key and wait until it is accepted."""
        key_id, secret = self._key_id, secrets.token_urlsafe(24)
        self._key = format_key(key_id, secret)
        command = CreateKey(
            key_id=key_id, sha256=hash_secret(secret), role="submitter", tenant=TENANT
        )
        await self._loaded.append(TP("access.commands", 0), as_record(command))
        await faults.wait_until(lambda: self._request("GET", "/v1/jobs?limit=1")[0] == 200, 30.0)

    async def run(self) -> None:
        """Submit a job and list jobs in turn until cancelled."""
        while True:
            for kind, method in (("submit", "POST"), ("read", "GET")):
                status, body = await asyncio.to_thread(self._request, method, "/v1/jobs")
                self.answers.append(ProbeAnswer(time.time(), kind, status))
                if status == 202:
                    self.acked.append(str(body["command_id"]))
                    self._loaded.expect(str(body["job_id"]))
            await asyncio.sleep(PROBE_EVERY_S)

    def _request(self, method: str, path: str) -> tuple[int, Json]:
        job = {"spec": {"name": "probe", "simulated": {"duration_s": 0.1}}}
        request = urllib.request.Request(
            self._loaded.bench.stack.gateway + path,
            json.dumps(job).encode() if method == "POST" else None,
            {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {}
        except OSError:
            return NO_ANSWER, {}

    def first_s(self, kind: str, status: int, since_s: float) -> float | None:
        """Return the seconds from `since_s` to the first answer of that kind and status."""
        times = [
            answer.at
            for answer in self.answers
            if (answer.kind, answer.status) == (kind, status) and answer.at > since_s
        ]
        return round(min(times) - since_s, 2) if times else None

    def count_statuses(self, kind: str, begin_s: float, end_s: float) -> dict[str, int]:
        """Return how often each status was received after `begin_s`, up to `end_s`."""
        statuses = Counter(
            str(answer.status)
            for answer in self.answers
            if answer.kind == kind and begin_s < answer.at <= end_s
        )
        return dict(sorted(statuses.items()))
