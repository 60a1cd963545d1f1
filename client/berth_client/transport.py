"""Between calls and HTTP: requests, answers, errors; the HTTP library is imported by first use."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from berth_client.calls import Call
from berth_client.errors import NO_ANSWER, BerthError, InvalidField
from berth_client.installation import BAD_FILE, InstallationAddress

if TYPE_CHECKING:
    import httpx2

TIMEOUT_S = 15.0
STREAM_TIMEOUT_S = 30.0
"""A stream sends a comment at least every two seconds."""
RETRIES = 4
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 10.0
BAD_ADDRESS, UNTRUSTED, NOT_BERTH = "bad_address", "untrusted", "not_berth"


class StreamEvent(NamedTuple):
    """A server-sent event; `id` is its position, empty where the stream has none."""

    name: str
    data: str
    id: str = ""


def options_of(installation: InstallationAddress) -> dict[str, Any]:
    """Return the arguments of the HTTP client. Raises BerthError for a bad address."""
    address = urlsplit(installation.url)
    if address.scheme not in ("http", "https") or not address.hostname:
        detail = f"invalid address: {installation.url!r}; must be http or https"
        raise BerthError(0, BAD_ADDRESS, detail)
    headers = {"Accept": "application/json"}
    if installation.key:
        headers["Authorization"] = f"Bearer {installation.key}"
    return {
        "base_url": installation.url.rstrip("/"),
        "headers": headers,
        "timeout": TIMEOUT_S,
        # Neither proxies nor passwords of this machine: a gateway is addressed directly.
        "trust_env": False,
    }


def trust_of(installation: InstallationAddress) -> ssl.SSLContext | bool:
    """Return the CAs that a connection trusts. Raises BerthError for a bad file."""
    if not installation.url.startswith("https:"):
        return False
    context = ssl.create_default_context()
    try:
        if installation.ca:
            context.load_verify_locations(cafile=installation.ca)
    except OSError as error:
        detail = f"{installation.ca}: {error.strerror or 'no PEM certificates'}"
        raise BerthError(0, BAD_FILE, detail) from None
    return context


def request_of(call: Call[Any]) -> dict[str, Any]:
    """Return the arguments of a request."""
    options: dict[str, Any] = {"params": call.parameters, "headers": dict(call.headers)}
    if isinstance(call.body, bytes):
        return {**options, "content": call.body}
    return options if call.body is None else {**options, "json": dict(call.body)}


def unreachable(url: str, error: Exception) -> BerthError:
    """Return the error of a request without an answer."""
    import httpx2

    is_slow = isinstance(error, httpx2.TimeoutException)
    reason = "no answer in time" if is_slow else str(error) or type(error).__name__
    is_untrusted = isinstance(first_cause(error), ssl.SSLCertVerificationError)
    code = UNTRUSTED if is_untrusted else NO_ANSWER
    return BerthError(0, code, f"{url} is not reachable: {reason}")


def first_cause(error: BaseException) -> BaseException:
    """Return the error that an HTTP library has put into others."""
    while (below := error.__cause__ or error.__context__) is not None:
        error = below
    return error


@contextmanager
def failures(url: str) -> Iterator[None]:
    """Raise BerthError for what fails within, without an answer."""
    import httpx2

    try:
        yield
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
        raise unreachable(url, error) from first_cause(error)


def content_of(response: httpx2.Response) -> Any:
    """Return the content of an answer that was read. Raises BerthError for a refusal."""
    if response.status_code >= 400:
        raise problem_of(response.status_code, response.content, response.headers)
    return object_of(response.content) if response.content else {}


def problem_of(status: int, raw: bytes, headers: Mapping[str, str]) -> BerthError:
    after = headers.get("retry-after", "")
    wait_s = float(after) if after.isdigit() else None
    try:
        problem = object_of(raw)
    except BerthError:
        return BerthError(status, f"status {status}", retry_after_s=wait_s)
    errors = [
        InvalidField(str(one.get("field") or ""), one.get("value"), str(one.get("rule")))
        for one in problem.get("errors") or ()
    ]
    reason = str(problem.get("reason", f"status {status}"))
    return BerthError(status, reason, str(problem.get("detail") or ""), errors, wait_s)


def object_of(raw: bytes) -> dict[str, Any]:
    try:
        document = json.loads(raw)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        detail = "response is not a JSON object: is this the address of a Berth API?"
        raise BerthError(200, NOT_BERTH, detail)
    return document


def pause_s(error: BerthError, attempt: int) -> float:
    """Return how long to wait after the failed attempt, counted from 0."""
    doubled_s: float = FIRST_PAUSE_S * 2**attempt
    return max(error.retry_after_s or 0.0, min(doubled_s, LONGEST_PAUSE_S))


class EventReader:
    """Server-sent events of the bytes of a stream, in parts of any size."""

    def __init__(self) -> None:
        self._rest = b""
        self._name, self._id = "", ""
        self._data: list[str] = []
        self.last = ""
        """Name of the last event."""

    def feed(self, raw: bytes) -> Iterator[StreamEvent]:
        """Yield the events that are complete; a comment that keeps the stream open is `alive`."""
        *lines, self._rest = (self._rest + raw).split(b"\n")
        for line in lines:
            event = self._read(line.decode(errors="replace").rstrip("\r"))
            if event is not None:
                self.last = event.name
                yield event

    def check_end(self) -> None:
        """Raise ConnectionError for a stream that broke off: a complete one ends with `end`."""
        if self.last != "end":
            raise ConnectionError("the stream broke off")

    def _read(self, line: str) -> StreamEvent | None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            event = StreamEvent(self._name, "\n".join(self._data), self._id)
            is_event = bool(self._data)
            self._name, self._id, self._data = "", "", []
            return event if is_event else None
        if line == ": alive":
            return StreamEvent("alive", "")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        return None
