"""A digest of the decisions of access and admission on one long, seeded history of inputs."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from typing import TypeVar

from services.access.core.decide import Access
from shared.contracts.access import CreateKey, RegisterTenant, RevokeKey
from shared.contracts.attempts import JobAttemptFailed, JobFailed, JobSucceeded
from shared.contracts.codec import encode_event
from shared.contracts.pools import ConfigurePool
from shared.ledger.decider import Decider, Input
from tests.harness.decider import an_input, run
from tests.services.admission.core.cases import (
    ADMISSION,
    NOW,
    cancel,
    command,
    joined,
    lost,
    placed,
    pool,
    set_quota,
    submit,
)

S = TypeVar("S")
ROUNDS = 400


def commands_of_access(draw: random.Random) -> Iterator[Input]:
    for n in range(ROUNDS):
        name = f"t{draw.randrange(20)}"
        commands = (
            ConfigurePool(pool=name, round_ms=1 + draw.randrange(3)),
            RegisterTenant(tenant=name, default_pool=f"t{draw.randrange(20)}"),
            CreateKey(key_id=name, sha256=f"{n % 2:064d}", role="viewer", tenant=None),
            RevokeKey(key_id=name),
        )
        yield an_input(draw.choice(commands), "access.commands")


def inputs_of_admission(draw: random.Random) -> Iterator[Input]:
    for n in range(ROUNDS):
        job = f"j{draw.randrange(n + 1)}"
        tenant = draw.choice(("acme", "beta"))
        labels = {f"l{k}": "x" for k in range(draw.randrange(3))}
        on = tuple(f"j{draw.randrange(n + 1)}" for _ in range(draw.choice((0, 0, 0, 2))))
        yield draw.choice(
            (
                submit(f"j{n}", tenant, gpus=draw.choice((0.5, 1, 4)), depends_on=on, env=labels),
                submit(f"j{n}", tenant, size=1 + draw.randrange(3), spot=draw.random() < 0.3),
                submit(f"j{n}", tenant, node_selector=labels),
                cancel(job, None),
                set_quota(draw.randrange(6), draw.choice((None, 1)), draw.choice((None, 1))),
                placed(JobSucceeded(job_id=job, tenant=tenant, attempt=1)),
                placed(JobFailed(job_id=job, tenant=tenant, attempt=1, reason="exit_code")),
                placed(JobAttemptFailed(job_id=job, tenant=tenant, attempt=1, reason="exit_code")),
                joined(f"n{draw.randrange(4)}", 4 + 4 * draw.randrange(2)),
                lost(f"n{draw.randrange(4)}"),
                command(draw.choice([RevokeKey(key_id="k")])),
            )
        )


def encoded_decisions(decider: Decider[S], state: S, inputs: Iterator[Input]) -> Iterator[bytes]:
    for n, item in enumerate(inputs):
        for event in run(decider, state, [item], NOW + 100 * n):
            yield event.TYPE.encode() + encode_event(event)


def digest() -> str:
    total = hashlib.sha256()
    access, admission = Access(lanes=8), ADMISSION
    for encoded in encoded_decisions(
        access, access.initial(0), commands_of_access(random.Random(7))
    ):
        total.update(encoded)
    for encoded in encoded_decisions(admission, pool(), inputs_of_admission(random.Random(11))):
        total.update(encoded)
    return total.hexdigest()
