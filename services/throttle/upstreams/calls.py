"""A request to the upstreams of an endpoint, the answer, and the errors instead of one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

FailureCode = Literal["no_upstream", "upstream_busy", "upstream_failed", "upstream_timeout"]


@dataclass(frozen=True, slots=True)
class UpstreamCall:
    """A request; `body` may hold `msgspec.Raw` values, which are sent byte for byte."""

    path: str
    """The path below the address of the upstream, as `/v1/chat/completions`."""
    body: Mapping[str, object]
    headers: Mapping[str, str]
    """Headers for the engine; credentials and headers of the connection are left out."""
    first_byte_timeout_s: float
    """Limit until the first byte of the answer's body, all attempts together."""
    idle_timeout_s: float
    """Limit of the silence between two chunks, while they are awaited."""
    prefix: str = ""
    """Key of the prompt's beginning: equal ones are sent to the same upstream if it may be."""


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """An answer of which the first byte has arrived; `chunks` may raise UpstreamBroken."""

    upstream: str
    status: int
    headers: Mapping[str, str]
    """Names in lower case, without those of the connection and of the encoding."""
    chunks: AsyncIterator[bytes]
    gather: Callable[[], None] = lambda: None
    """Lets what is left arrive in larger chunks, for an answer that is passed on as a whole."""


class UpstreamBroken(Exception):
    """An answer broke off after its first byte; `reason` quotes nothing of it."""

    def __init__(self, upstream: str, reason: str) -> None:
        super().__init__(f"{upstream}: {reason}")
        self.upstream = upstream
        self.reason = reason


class UpstreamsFailed(Exception):
    """No upstream answered; nothing of an answer has reached the client.

    `text` may be logged. `engine_text` is the message of the engine, which may quote the prompt.
    """

    def __init__(
        self,
        status: int,
        code: FailureCode,
        text: str,
        retry_after_s: float | None = None,
        engine_text: str = "",
    ) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.text = text
        self.retry_after_s = retry_after_s
        self.engine_text = engine_text
