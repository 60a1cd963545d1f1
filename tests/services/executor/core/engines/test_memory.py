"""A process remembers times of jobs that the engine still shows, and no others."""

from __future__ import annotations

from services.executor.core.engines.contract import EnginePhase
from services.executor.core.engines.memory import Memory
from shared.contracts.failures import Failure
from tests.services.executor.core.engines.looks import engine_job, observed


def test_times_last_as_long_as_the_job() -> None:
    memory = Memory(killed_s={"17": 1.0, "9": 1.0}, refusals={"other": Failure(reason="x")})
    memory.prune({}, observed(engine_job()))
    assert memory == Memory(killed_s={"17": 1.0})


def test_a_release_is_remembered_until_the_engine_has_forgotten_its_job() -> None:
    memory = Memory(released_s={"17": 1.0, "9": 1.0})
    memory.prune({}, observed(engine_job(EnginePhase.ENDED, is_kept=True)))
    assert memory.released_s == {"17": 1.0}
