"""Text of a failure: why a worker could not start or did not end well, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from cli.text.output import printable, text_of

Data = Mapping[str, object]

REASONS = {
    "command_missing": "the program or its interpreter does not exist on the node",
    "command_forbidden": "the job's user may not execute the program",
    "command_unusable": "the program cannot be executed",
    "no_command": "there is no command",
    "no_container_runtime": "the node runs no containers",
    "image_not_found": "its registry has no such image, or does not give it to the node",
    "image_unusable": "the image gives orders to the engine of the node",
    "image_too_large": "its image is larger than the node allows",
    "image_unreachable": "the registry of the image does not answer",
    "container_failed": "the container could not be made",
    "workdir_missing": "the working directory does not exist on the node",
    "workdir_forbidden": "the job's user may not enter the working directory",
    "workdir_unreachable": "the file system of the working directory does not answer",
    "bundle_missing": "the files of its bundle are not stored any more",
    "bundle_unusable": "its bundle cannot be unpacked",
    "bundle_unreachable": "its bundle could not be fetched",
    "secret_missing": "a secret is missing",
    "secret_unusable": "a secret cannot be passed to a program",
    "secret_unreadable": "a secret could not be read",
    "secret_forged": "a secret is not what was stored for the tenant under this name",
    "secret_lost": "the node lost the values of secrets before the start",
    "no_memory_folder": "the node has no folder in memory for values of secrets",
    "user_missing": "the tenant's user does not exist on the node",
    "no_uid": "the node has no uid left",
    "node_folder_closed": "the node's folders are closed to the tenant",
    "gpu_busy": "a GPU of the node is busy",
    "no_such_gpu": "the node lacks a GPU that it registered",
    "prolog_failed": "the node's prolog failed",
    "node_draining": "the node takes no more work",
    "disk_full": "the node's disk is full",
    "check_failed": "the check before the start failed",
    "start_failed": "the worker could not be started",
    "step_failed": "the process that holds the worker could not be started",
    "malformed_order": "the node could not read its order",
    "out_of_memory": "it used more memory than requested",
    "disk_limit": "its files took more of the node's disk than it allows",
    "walltime": "it ran longer than walltime_s",
    "fenced": "the node stopped it, as it had lost its control plane",
    "step_lost": "the process that held it died",
    "engine_refused": "the site's engine refused it",
    "engine_waits": "the site's engine did not start it in time",
    "engine_cancelled": "it was cancelled in the site's engine",
    "engine_unsupported": "the site's engine cannot run it",
    "start_timeout": "its workers were not ready in time",
    "exit_code": "the program failed",
    "signal": "a signal ended the program",
}


MISSING_SHOWN = (
    "other nodes may have it: it is tried on up to 3 of them, where the pool has others, and then"
    " fails"
)


def failure_of(data: Data) -> Data | None:
    """Return the failure in an event or a job; None without one."""
    failure = data.get("failure")
    return cast("Data", failure) if isinstance(failure, dict) else None


def failure_words(failure: Data) -> str:
    """Return the failure in one line: reason, detail, place and exit code."""
    reason = str(failure.get("reason") or "")
    text = REASONS.get(reason, reason.replace("_", " "))
    detail = f": {failure['detail']}" if failure.get("detail") else ""
    code = failure.get("exit_code")
    exited = "" if code is None else f", exit code {code}"
    place = f"rank {failure.get('rank')} on {failure.get('node_id')}"
    # Its detail comes from the tenant's program: it is one line, and no terminal obeys it.
    return text_of(f"{text}{detail} ({reason}; {place}{exited})")


REFUSALS = {
    "infeasible": "request what nodes of the pool have: `berth nodes --pool POOL` lists their GPUs "
    "and types, `berth nodes show NODE` cores and memory",
    "invalid_spec": "correct the named field, then submit again",
    "dependency_missing": "name a job of the same tenant and pool, then submit again",
    "dependency_cycle": "remove the job itself from `--after`, then submit again",
}
"""Advice about a refused submission, by its reason."""


def refusal_lines(reason: object) -> list[str]:
    """Return what to do about a refused submission, if it is known."""
    advice = REFUSALS.get(str(reason))
    return [f"to do: {advice}"] if advice else []


def failure_lines(failure: Data, job_id: str = "") -> list[str]:
    """Return the failure with its last output and what to do about it, with the id of the job."""
    from shared.contracts.failures import MISSING_ON_NODE

    shown = [f"failed: {failure_words(failure)}"]
    output = failure.get("output")
    if isinstance(output, (list, tuple)):
        shown += [f"  | {printable(str(text), kept='')}" for text in output]
    if failure.get("advice"):
        advice = str(failure["advice"])
        shown.append(f"to do: {advice.replace('logs JOB', f'logs {job_id}') if job_id else advice}")
    if failure.get("reason") in MISSING_ON_NODE:
        shown.append(MISSING_SHOWN)
    elif failure.get("permanent"):
        shown.append("it was not tried again: the same start fails on every node")
    return shown


def planned_failure(job: Data) -> list[str]:
    """Return that a failed job was meant to fail, if its specification says so."""
    spec = job.get("spec")
    simulated = spec.get("simulated") if isinstance(spec, dict) else None
    code = simulated.get("exit_code") if isinstance(simulated, dict) else None
    if not code or (job.get("phase"), job.get("exit_code")) != ("failed", code):
        return []
    return [f"it failed on purpose: its workload ends it with exit code {code} (spec.simulated)"]
