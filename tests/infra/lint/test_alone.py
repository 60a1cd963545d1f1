"""A package that is installed alone may import the standard library and itself."""

from __future__ import annotations

import pytest

from infra.lint.alone import check
from infra.lint.source import parse


@pytest.mark.parametrize(
    ("path", "text", "imported"),
    [
        ("agent/berth_agent/node/executor/session.py", "import requests", "requests"),
        (
            "agent/berth_agent/node/executor/session.py",
            "from shared.contracts import agents",
            "shared",
        ),
        (
            "agent/berth_agent/node/executor/session.py",
            "def f():\n    import psutil.tests",
            "psutil",
        ),
        ("agent/berth_agent/node/executor/session.py", "import berth_reporter", "berth_reporter"),
        ("reporter/berth_reporter/reporter.py", "from numpy import array", "numpy"),
        ("client/berth_client/client.py", "import pydantic", "pydantic"),
        ("reporter/berth_reporter/reporter.py", "import os, berth_agent", "berth_agent"),
    ],
)
def test_another_package_is_a_finding(path: str, text: str, imported: str) -> None:
    [finding] = check([parse(path, text)])
    assert finding.startswith(f"{path}:")
    assert finding.endswith(f"is installed alone but imports {imported}")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("agent/berth_agent/node/executor/session.py", "import http.client, berth_agent.messages"),
        ("agent/berth_agent/node/executor/session.py", "from berth_agent.linux import files"),
        ("agent/berth_agent/node/executor/session.py", "from . import http"),
        ("reporter/berth_reporter/reporter.py", "from socket import AF_UNIX"),
        ("client/berth_client/client.py", "import httpx2"),
        ("services/gateway/app.py", "import fastapi"),
    ],
)
def test_the_standard_library_and_the_package_itself_are_none(path: str, text: str) -> None:
    assert list(check([parse(path, text)])) == []
