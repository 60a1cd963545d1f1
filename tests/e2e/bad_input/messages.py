"""Valid messages, from which the tests of this folder make bad ones."""

from __future__ import annotations

import json
from uuid import uuid4

from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from tests.e2e.stand import POOL, Json, a_spec

INGRESS = "submissions.ada"


def submit_job(**spec: object) -> SubmitJob:
    default = JobSpec.model_validate(a_spec())
    return SubmitJob(
        job_id=str(uuid4()),
        tenant="ada",
        pool=POOL,
        idempotency_key="k",
        spec=default.model_copy(update=spec),
    )


def submit_data(**changed: object) -> Json:
    return {**json.loads(submit_job().model_dump_json(exclude_none=True)), **changed}
