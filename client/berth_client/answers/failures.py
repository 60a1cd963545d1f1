"""Failures of the workers of jobs."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict


class JobFailure(TypedDict):
    """The first failure of a job's workers."""

    reason: str
    """Code in snake_case."""
    detail: NotRequired[str]
    output: NotRequired[list[str]]
    """Last lines of the worker's output."""
    permanent: NotRequired[bool]
    """The same start fails again on every node."""
    rank: NotRequired[int]
    node_id: NotRequired[str]
    exit_code: NotRequired[int | None]
    advice: NotRequired[str]
    """Advice to its user or an operator."""
