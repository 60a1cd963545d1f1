"""Small random pipelines, on which planned schedules are compared with exact ones."""

from __future__ import annotations

from random import Random

from shared.pipeline.model import Pipeline, checked


def random_pipeline(seed: int) -> Pipeline:
    """Return a small pipeline: whole times, some slow hops, and memory that may be short."""
    random = Random(seed)
    stages = random.randint(2, 5)
    slowest = random.choice((30, 60))

    def times() -> list[float]:
        return [random.randint(10, 20) for _ in range(stages)]

    return checked(
        stages,
        random.randint(stages, 12),
        times(),
        times(),
        times(),
        [random.randint(1, slowest) if random.random() < 0.4 else 0 for _ in range(stages - 1)],
        [random.randint(stages, 2 * stages + 3)] if random.random() < 0.5 else [],
    )
