"""A workload's job as its tenant would have written it."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from cli.replay.submission import of_workload
from shared.contracts.identity import derive_job_id
from shared.contracts.job_spec import JobSpec
from shared.ledger.cloudevents import decode
from simulator.workload.source import load


def test_every_job_of_the_synthetic_workload_is_a_valid_submission() -> None:
    for job in load("synthetic", 50).jobs:
        submission = of_workload(job, "demo", "run")
        event = decode(submission.encoded())
        body = msgspec.json.decode(event.body)
        spec = JobSpec.model_validate_json(msgspec.json.encode(body["spec"]))
        assert event.type == "job.submit.v1"
        assert spec.gang.gpus == job.gpus
        assert spec.simulated is not None
        assert spec.simulated.duration_s == job.duration_s
        assert spec.simulated.exit_code == (1 if job.succeeded is False else 0)
        assert submission.job_id == derive_job_id(job.tenant, "demo", body["idempotency_key"])


def test_two_runs_of_one_job_are_two_jobs_and_one_run_is_one() -> None:
    job = load("synthetic", 1).jobs[0]
    one, same, other = (of_workload(job, "demo", run).job_id for run in ("a", "a", "b"))
    assert one == same != other


def test_a_submission_has_the_costs_of_its_stops() -> None:
    [job] = load("synthetic", 1).jobs
    submission = of_workload(job, "demo", "run", checkpoint_s=1800.0, restart_s=90.0)
    spec = JobSpec.model_validate_json(msgspec.json.encode(submission.spec))
    assert spec.simulated is not None
    assert (spec.checkpoint_interval_s, spec.simulated.restart_s) == (1800.0, 90.0)


def test_a_job_of_a_trace_has_the_time_that_it_took_whatever_its_user_requested() -> None:
    [job] = load("synthetic", 1).jobs
    for requested_s, walltime_s in ((job.duration_s / 2, job.duration_s + 90.0), (1e7, 1e7)):
        submission = of_workload(replace(job, walltime_s=requested_s), "demo", "run", restart_s=90)
        assert submission.spec["walltime_s"] == walltime_s
