"""The address of a webhook holds no credentials, no control character and no other scheme."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from shared.contracts.webhooks import WebhookUrl

ADDRESS = TypeAdapter[str](WebhookUrl)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "https://example.org/hooks?to=ops",
        "https://[2001:db8::1]:8443/x",
        "http://10.0.0.7:9000/",
    ],
)
def test_an_address_is_taken_as_it_is(url: str) -> None:
    assert ADDRESS.validate_python(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "file:///etc/passwd",
        "https://user:password@example.org/",
        "https://example.org/#part",
        "https://example.org/\r\nX-More: 1",
        "https://example.org\n",
        "https://ex ample.org/",
        "https:///path",
        "https://example.org/" + "a" * 2048,
    ],
)
def test_another_one_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        ADDRESS.validate_python(url)
