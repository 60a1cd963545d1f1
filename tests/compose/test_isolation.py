"""Hostile jobs in the container of the agent: every case is held."""

from __future__ import annotations

import asyncio
import os

import pytest

from benchmarks import isolation
from benchmarks.isolation import COMPOSE, IsolationOptions
from tests.compose.project import Project

pytestmark = [pytest.mark.compose, pytest.mark.parts]


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: processes of a container are not seen")
def test_jobs_in_the_container_of_the_agent_reach_nothing(project: Project) -> None:
    result = asyncio.run(isolation.run(IsolationOptions(agent=COMPOSE), lambda line: None))
    assert result["seen"] == {} and set(result["cases"].values()) == {"held"}  # type: ignore[attr-defined]
