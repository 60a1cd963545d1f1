"""Hostile jobs and requests: agents of root, here and in containers, hold every case."""

from __future__ import annotations

import asyncio
import os

import pytest

from benchmarks import isolation
from benchmarks.isolation import IsolationOptions, agents_of, names


def ignore(line: str) -> None:
    """Drop a line of progress."""


def test_cases_have_names_of_their_own() -> None:
    assert len(names()) == len(set(names())) > 23


def test_root_starts_both_agents_and_others_their_own() -> None:
    assert [name for name, _ in agents_of(1000)] == ["ordinary"]
    assert [*agents_of(0)][0] == ("root", 0)


def test_an_unknown_case_is_refused_before_anything_starts() -> None:
    with pytest.raises(ValueError, match="only: 'none': no such case"):
        asyncio.run(isolation.run(IsolationOptions(only="none"), ignore))


@pytest.mark.process
def test_an_agent_that_is_not_here_is_refused() -> None:
    with pytest.raises(ValueError, match="agent: 'none': not here; .*ordinary"):
        asyncio.run(isolation.run(IsolationOptions(agent="none"), ignore))


@pytest.mark.parts
@pytest.mark.stack
@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_an_agent_of_root_holds_every_case() -> None:
    result = asyncio.run(isolation.run(IsolationOptions(agent="root"), ignore))
    assert result["seen"] == {} and set(result["cases"].values()) == {"held"}  # type: ignore[attr-defined]
