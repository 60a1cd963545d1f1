"""The gateway accepts spans from the configured kind of address alone."""

from __future__ import annotations

from typing import Literal

import pytest

from services.gateway.routes.probes import _is_allowed

Near = Literal["loopback", "private"]


@pytest.mark.parametrize(
    ("host", "may_send", "taken"),
    [
        ("127.0.0.1", "loopback", True),
        ("::1", "loopback", True),
        ("172.18.0.4", "loopback", False),
        ("127.0.0.1", "private", True),
        ("172.18.0.4", "private", True),
        ("fd00::4", "private", True),
        ("8.8.8.8", "private", False),
        ("collector", "private", False),
        ("", "private", False),
    ],
)
def test_spans_are_taken_from_near_only(host: str, may_send: Near, taken: bool) -> None:
    assert _is_allowed(host, may_send) is taken
