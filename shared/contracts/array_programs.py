"""The program of an array: command and environment, which its jobs share."""

from __future__ import annotations

from shared.contracts.job_spec import JobSpec


def array_id_of(job_id: str, index: int | None) -> str:
    """Return the id of the array that a job belongs to; empty for a job without an index."""
    return "" if index is None else job_id.removesuffix(f".{index}")


def without_program(spec: JobSpec) -> JobSpec:
    """Return what each job of an array has for itself: nothing that decides reads the rest."""
    return spec.model_copy(update={"command": (), "env": {}})


def with_program(spec: JobSpec, command: tuple[str, ...], env: dict[str, str]) -> JobSpec:
    """Return the spec of a job of an array with the program of its array."""
    return spec.model_copy(update={"command": command, "env": env})
