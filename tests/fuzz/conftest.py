"""The gateway of these tests is that of its own: a real process on a real broker and Postgres."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.fuzz.gateway import fill
from tests.fuzz.tally import PATH_VARIABLE, TRIED
from tests.services.gateway.conftest import gateway_dsn, stack
from tests.services.gateway.stack import Stack

__all__ = ["gateway_dsn", "stack"]


def pytest_sessionfinish() -> None:
    if path := os.environ.get(PATH_VARIABLE):
        Path(path).write_text(json.dumps(TRIED))


@pytest.fixture(scope="session")
def rows(stack: Stack) -> Stack:
    """The gateway with a job of each tenant in its read models."""
    asyncio.run(fill(stack))
    return stack
