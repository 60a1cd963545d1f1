"""The headers that go to an engine and come back from it."""

from __future__ import annotations

from collections.abc import Mapping

CONNECTION = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of one connection and of the form of a body, which no proxy passes on."""
OWN = CONNECTION | {
    "accept-encoding",
    "api-key",
    "authorization",
    "content-type",
    "cookie",
    "proxy-authorization",
    "x-api-key",
}
"""Headers that this service sets itself, and credentials of clients."""
NOT_RETURNED = CONNECTION | {"set-cookie", "www-authenticate"}


def engine_headers(secret: str) -> dict[str, str]:
    """Return the headers of every request to an upstream; an empty secret is none."""
    headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    return headers


def request_headers(own: Mapping[str, str], client: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of one request: those of the service, and what the client may add."""
    headers = dict(own)
    for name, value in client.items():
        if name.lower() not in OWN and is_printable(name) and is_printable(value):
            headers[name] = value
    return headers


def answer_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return what may be passed on of the headers of an answer, under names in lower case."""
    kept = {}
    for name, value in headers.items():
        lowered = name.lower()
        if lowered not in NOT_RETURNED:
            kept[lowered] = value
    return kept


def is_printable(text: str) -> bool:
    """Return whether the text can be in a header without ending it."""
    return text.isascii() and text.isprintable()
