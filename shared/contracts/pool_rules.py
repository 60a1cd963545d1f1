"""The rules that a specification must keep to run in a pool, by the settings of the pool alone."""

from __future__ import annotations

import re
from collections.abc import Callable

from shared.contracts.job_spec import JobSpec
from shared.contracts.pools import PoolConfigured

MAX_IMAGE_CHARS = 256
IMAGE = re.compile(
    r"(?:[a-z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    r"(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)

Rule = Callable[[JobSpec, PoolConfigured], str | None]
"""Returns what is wrong, as field, value and rule; None if the spec keeps the rule."""


def check_backends(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why the pool runs no jobs: only executors of earlier releases ran processes."""
    if set(pool.backends) - {"process"}:
        return None
    return f"pool: {pool.pool!r}: its backend process is retired; configure it with agent"


def check_command(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why the job lacks a command; virtual pools need none, and pods have their own."""
    if spec.command or spec.pods or is_virtual(pool):
        return None
    return f"command: (): required in pool {pool.pool}, which runs processes"


def check_image(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why the pool cannot run the job's image; its nodes are looked at later."""
    if not spec.image:
        return None
    if is_virtual(pool):
        return f"image: {spec.image!r}: pool {pool.pool} simulates jobs, not images"
    if len(spec.image) > MAX_IMAGE_CHARS or not IMAGE.fullmatch(spec.image):
        rule = (
            f"must be NAME, NAME:TAG or NAME@sha256:DIGEST of {MAX_IMAGE_CHARS} characters at most"
        )
        return f"image: {spec.image[:MAX_IMAGE_CHARS]!r}: {rule}"
    return None


def check_bundle(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why the job cannot start with its bundle."""
    if not spec.bundle:
        return None
    if is_virtual(pool):
        return f"bundle: {spec.bundle!r}: pool {pool.pool} simulates jobs, which have no files"
    if spec.workdir:
        rule = "must be empty with a bundle, whose files are in the worker's own directory"
        return f"workdir: {spec.workdir[:256]!r}: {rule}"
    return None


def check_simulated(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why a job that says how it is simulated is refused: only virtual nodes do that."""
    if spec.simulated is None or is_virtual(pool):
        return None
    behaviour = spec.simulated.model_dump(exclude_defaults=True)
    return f"simulated: {behaviour}: must be absent in pool {pool.pool}, which runs processes"


def is_virtual(pool: PoolConfigured) -> bool:
    """Return whether the pool lets workers run on virtual nodes."""
    return "virtual" in pool.backends


POOL_RULES: tuple[Rule, ...] = (
    check_backends,
    check_command,
    check_image,
    check_bundle,
    check_simulated,
)


def pool_violation(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """Return why jobs of this specification cannot run in the pool; None if they can."""
    return next((broken for rule in POOL_RULES if (broken := rule(spec, pool))), None)
