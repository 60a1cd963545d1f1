"""Text of a failure: why a worker could not start or did not end well, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

Data = Mapping[str, object]

REASONS = {
    "command_missing": "the program does not exist on the node",
    "no_command": "there is no command",
    "workdir_missing": "the working directory does not exist on the node",
    "no_permission": "the job's user lacks a permission",
    "image_not_found": "the image cannot be pulled",
    "secret_missing": "a secret is missing",
    "gpu_busy": "a GPU of the node is busy",
    "no_such_gpu": "the node lacks a GPU that it registered",
    "prolog_failed": "the node's prolog failed",
    "out_of_memory": "it used more memory than requested",
    "walltime": "it ran longer than walltime_s",
    "fenced": "the node stopped it, as it had lost its control plane",
    "step_lost": "the process that held it died",
    "exited": "the program failed",
    "signalled": "a signal ended the program",
}


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
    return (
        f"{text}{detail} ({reason}; rank {failure.get('rank')} on {failure.get('node_id')}{exited})"
    )


def failure_lines(failure: Data) -> list[str]:
    """Return the failure with its last output and what to do about it."""
    shown = [f"failed: {failure_words(failure)}"]
    output = failure.get("output")
    if isinstance(output, (list, tuple)):
        shown += [f"  | {text}" for text in output]
    if failure.get("advice"):
        shown.append(f"to do: {failure['advice']}")
    if failure.get("permanent"):
        shown.append("it was not tried again: the same start fails on every node")
    return shown
