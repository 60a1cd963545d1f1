"""Client of the gateway's REST API over the standard library, which imports quickly."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import NamedTuple, cast
from urllib.parse import quote, urlencode, urlsplit

from cli.api.target import Target
from cli.errors import BadInput, CliError, NotFound, Refused, TooManyRequests, Unreachable

TIMEOUT_S = 15.0
STREAM_TIMEOUT_S = 30.0
"""A stream sends a comment at least every two seconds."""
RETRY_S = 1.0
"""When a request is made again that is answered with 429, if the answer does not say."""

Json = dict[str, object]
Query = Mapping[str, object | None]


class StreamEvent(NamedTuple):
    """A server-sent event; `id` is its position, empty where the stream has none."""

    name: str
    data: str
    id: str = ""


class Api:
    """A REST client; a response of status 400 or above raises an error of `errors.py`."""

    def __init__(self, target: Target) -> None:
        self._address = urlsplit(target.url)
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            raise BadInput(f"invalid address: {target.url!r}; must be http or https")
        self._folder = target.folder
        self.ca = target.ca
        """File of the CA that is trusted beside the system's, empty for none."""
        self._headers = {"Accept": "application/json"}
        if target.key:
            self._headers["Authorization"] = f"Bearer {target.key}"

    @property
    def url(self) -> str:
        return self._address.geturl()

    def get(self, path: str, query: Query | None = None) -> Json:
        return self._request("GET", path, query, None)

    def post(self, path: str, body: Mapping[str, object] | None = None) -> Json:
        return self._request("POST", path, None, body or {})

    def put(self, path: str, body: Mapping[str, object]) -> Json:
        return self._request("PUT", path, None, body)

    def patch(self, path: str, body: Mapping[str, object]) -> Json:
        return self._request("PATCH", path, None, body)

    def delete(self, path: str) -> Json:
        return self._request("DELETE", path, None, None)

    def stream(
        self, path: str, query: Query | None = None, *, alive: bool = False
    ) -> Iterator[StreamEvent]:
        """Yield server-sent events until the stream ends, by an event `end`.

        With `alive` also the gateway's keep-alive comments, as events `alive` without data.
        """
        connection, name = self._connection(STREAM_TIMEOUT_S), ""
        try:
            answer = self._send(connection, "GET", path, query, None)
            for event in _events(answer):
                name = event.name
                if alive or name != "alive":
                    yield event
            if name != "end":
                # A gateway that was killed: its end is no error to the reader of a body.
                raise ConnectionError("the stream broke off")
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()

    def _request(
        self, method: str, path: str, query: Query | None, body: Mapping[str, object] | None
    ) -> Json:
        connection = self._connection(TIMEOUT_S)
        try:
            raw = self._send(connection, method, path, query, body).read()
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()
        return _object(raw) if raw else {}

    def _send(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        query: Query | None,
        body: Mapping[str, object] | None,
    ) -> HTTPResponse:
        parameters = {
            name: value for name, value in (query or {}).items() if value not in (None, "")
        }
        url = f"{self._address.path.rstrip('/')}{path}" + (
            f"?{urlencode(parameters)}" if parameters else ""
        )
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, url, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        if answer.status >= 400:
            after = answer.headers.get("Retry-After", "")
            raise _refusal(answer.status, answer.read(), after)
        return answer

    def _connection(self, timeout_s: float) -> HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "https":
            context = ssl.create_default_context()
            if self.ca:
                _trust(context, self.ca)
            return HTTPSConnection(host, port, timeout=timeout_s, context=context)
        return HTTPConnection(host, port, timeout=timeout_s)

    def _unreachable(self, error: Exception) -> CliError:
        slow = isinstance(error, socket.timeout)
        reason = "no answer in time" if slow else str(error) or type(error).__name__
        text = f"{self.url} is not reachable: {reason}"
        if isinstance(error, ConnectionRefusedError) and self._folder is not None:
            text += f"; `berth status` shows the stack in {self._folder}, `berth up` starts one"
        if isinstance(error, ssl.SSLCertVerificationError):
            text += f"; {_certificate_rule(error.verify_message)}"
        return Unreachable(text)


def _certificate_rule(text: str) -> str:
    """Return what to do about a certificate that was not accepted for this reason."""
    if "not yet valid" in text or "expired" in text:
        return "look at the clock of this machine (`date -u`), then at the server's certificate"
    if "mismatch" in text or "not valid for" in text:
        return "its certificate is for other names: use one of them as the address"
    return "`--ca FILE` (or BERTH_CA) names the CA of the installation"


def _trust(context: ssl.SSLContext, ca: str) -> None:
    try:
        context.load_verify_locations(cafile=ca)
    except OSError as error:
        raise BadInput(f"{ca}: {error.strerror or 'no PEM certificates'}") from None


def part(name: str) -> str:
    """Quote one segment of a path."""
    return quote(name, safe="")


def pool_field(pool: str | None) -> Json:
    """Return the field of a body that names the pool; none without a pool."""
    return {"pool": pool} if pool else {}


def _refusal(status: int, raw: bytes, retry_after: str) -> CliError:
    text = _problem_text(status, raw)
    match status:
        case 404 | 410:
            return NotFound(text)
        case 400 | 405 | 413 | 415 | 422:
            return BadInput(text)
        case 401 | 403 | 409:
            return Refused(text)
        case 429:
            return TooManyRequests(text, float(retry_after) if retry_after.isdecimal() else RETRY_S)
        case 502 | 503 | 504:
            return Unreachable(text)
        case _:
            return CliError(text)


def _problem_text(status: int, raw: bytes) -> str:
    """Return the reason, detail and field errors of a problem as one line."""
    try:
        problem = _object(raw)
    except CliError:
        return f"status {status}"
    faults = cast("list[Json]", problem.get("errors") or [])
    rules = map(_rule, faults)
    reason, detail = problem.get("reason", f"status {status}"), problem.get("detail", "")
    return ": ".join(str(item) for item in (reason, detail, "; ".join(rules)) if item)


def _rule(fault: Json) -> str:
    """Return field, value and rule; a value that is private or long is not there."""
    value = f"{fault['value']!r}; " if fault.get("value") is not None else ""
    return f"{fault.get('field') or 'body'}: {value}{fault.get('rule')}"


def _object(raw: bytes) -> Json:
    try:
        document = json.loads(raw)
    except ValueError:
        raise CliError("response is not JSON: is this the address of a Berth API?") from None
    if not isinstance(document, dict):
        raise CliError("response is not a JSON object: is this the address of a Berth API?")
    return document


def _events(answer: HTTPResponse) -> Iterator[StreamEvent]:
    event, data, id = "", list[str](), ""
    for raw in answer:
        line = raw.decode(errors="replace").rstrip("\r\n")
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield StreamEvent(event, "\n".join(data), id)
            event, data, id = "", [], ""
        elif line == ": alive":
            yield StreamEvent("alive", "")
        elif name == "event":
            event = value
        elif name == "data":
            data.append(value)
        elif name == "id":
            id = value
