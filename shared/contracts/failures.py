"""Failures of workers: why one did not start or end well, and advice for its user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from pydantic import Field

from shared.contracts.base import Model

OutputLine = Annotated[str, Field(max_length=512)]


class Failure(Model):
    """The reason of a start or a run that failed."""

    reason: str = Field(max_length=64, description="machine-readable: snake_case")
    detail: str = Field("", max_length=1024, description="the value and the rule")
    output: tuple[OutputLine, ...] = Field(
        (), max_length=20, description="last lines of the worker's output"
    )
    permanent: bool = Field(False, description="the same start fails again on every node")


class WorkerFailure(Failure):
    """The first failure of a gang: its other workers were stopped because of it."""

    rank: int = Field(ge=0, description="rank of the worker in its gang")
    node_id: str = Field(description="node of the worker")
    exit_code: int | None = Field(None, description="exit code; absent: it never ran")


LOST_BY_NODE: Final = frozenset({"fenced", "step_lost"})
"""Reasons of an end that the node caused: the job goes on elsewhere, and no attempt is counted."""

MISSING_ON_NODE: Final = frozenset(
    {"workdir_missing", "workdir_forbidden", "command_missing", "command_forbidden"}
)
"""Reasons of a start that another node may not have: its folders and programs may differ."""

_NO_FILE: Final = "No such file or directory"
"""The text of programs about a missing file."""
_FILE_MISSING: Final = (
    "a worker starts in a private folder of its node: `--upload DIR` sends your files there, "
    "`--workdir DIR` names a folder that the node has; see `berth logs JOB`"
)
_NOT_IN: Final = (
    "workers start in {workdir} (`--workdir`) on their node: a file that is missing there has to "
    "be copied to each node, or named by its full path; see `berth logs JOB`"
)
_OUT_OF_MEMORY: Final = (
    "the machine was most likely out of memory (`dmesg` on the node): request more by "
    "`berth submit --mem GIB`, or use less; else somebody killed it; see `berth logs JOB`"
)
_NO_MEMORY: Final = ("MemoryError", "Cannot allocate memory", "std::bad_alloc", "Out of memory")
"""Texts of programs that got no memory."""
_USE_LESS: Final = (
    "it got no memory: request more by `berth submit --mem GIB` (gang.mem_gib_per_worker), or use "
    "less; see `berth logs JOB`"
)
_MODULE_MISSING: Final = (
    "a Python module is missing on the node: name the Python of its environment by the full path, "
    "or install it there; see `berth logs JOB`"
)
_NO_MODULE: Final = "ModuleNotFoundError: "
_INTERPRETER_MISSING: Final = (
    "correct the first line of the script, or submit `INTERPRETER SCRIPT`; lines that end with "
    "CR LF are of Windows: `sed -i 's/\\r$//' SCRIPT`"
)
_PYTHON_MISSING: Final = "submit `python3`, or the full path of the Python of an environment there"
_BRING_PROGRAM: Final = (
    "send your files by `--upload DIR`, or name their folder on the nodes by `--workdir DIR`"
)
_SEE_NODE: Final = "an operator should look at the node"
ADVICE: Final[Mapping[str, str]] = {
    "command_missing": "install it on the nodes, or name an image that has it by `--image`",
    "command_forbidden": "let the job's user execute the program",
    "command_unusable": "submit a program for the nodes' machines; a script begins with `#!`",
    "no_command": "give a command after `--`",
    "no_container_runtime": "install Podman on the node, restart its agent; else submit without "
    "image",
    "image_not_found": "correct its name; for a private registry an operator runs `podman login` "
    "there",
    "image_unusable": "build the image without the named annotation",
    "image_too_large": "build a smaller image; an operator can raise image_gib on the nodes",
    "image_unreachable": "an operator should look at the node's way to the registry of the image",
    "container_failed": "see `berth logs JOB`; the image may be of another machine, or the node "
    "out of order",
    "workdir_missing": "make it on every node of the pool, or submit without `--workdir`: "
    "workers get their own",
    "workdir_forbidden": "open the named folder (`chmod o+x`), or send your files by "
    "`--upload DIR`",
    "workdir_unreachable": "an operator should look at the file system of the directory",
    "bundle_missing": "submit again with `--upload DIR`",
    "bundle_unreachable": "an operator should look at the executor's BERTH_BUNDLES and its log",
    "bundle_unusable": "leave the named file out, by `.berthignore`, and submit again",
    "secret_missing": "set it by `berth secrets set NAME`, then submit again",
    "secret_unusable": "set it by `berth secrets set NAME`, to text, then submit again",
    "secret_unreadable": "an operator should look at the executor's BERTH_SECRET_KEYS and its log",
    "secret_forged": "set it again; an operator should ask who else wrote the ledger of access",
    "secret_lost": "none: the node lost the values before the start; the job starts again",
    "no_memory_folder": "an operator should mount a tmpfs at /dev/shm of the node",
    "user_missing": "an operator should make the tenant's user on the node",
    "no_uid": "an operator should raise uid_count on the node",
    "node_folder_closed": "an operator should open the node's folders to its users: `chmod o+x`",
    "gpu_busy": f"the node is avoided at the next attempt; {_SEE_NODE}",
    "no_such_gpu": "an operator should correct the node's inventory, or restart its agent",
    "prolog_failed": f"{_SEE_NODE}; it takes no jobs until then",
    "node_draining": "none: the node is leaving, and the job starts elsewhere",
    "disk_full": f"{_SEE_NODE}, whose disk is full; the job starts elsewhere",
    "check_failed": _SEE_NODE,
    "start_failed": _SEE_NODE,
    "step_failed": _SEE_NODE,
    "malformed_order": "an operator should compare the versions of agent and executor",
    "out_of_memory": "request more per worker: `berth submit --mem GIB` (gang.mem_gib_per_worker)",
    "disk_limit": "write less, or to a `--workdir`; `berth nodes show NODE` has the bound",
    "walltime": "request a longer `--walltime` (walltime_s), or resume from a checkpoint",
    "fenced": "none: the node lost its control plane, and the job starts again",
    "step_lost": "none: the process that held the worker died; see the node's log",
    "engine_refused": "an operator should look at what the site's engine says",
    "engine_waits": "the job starts elsewhere; see what else the site's engine runs there",
    "engine_cancelled": "ask who cancels jobs in the site's engine",
    "engine_unsupported": "submit to a pool of nodes with agents, or without what is named",
    "start_timeout": "see the pool's start_timeout_s, and the nodes that did not answer",
    "exit_code": "correct the program: `berth logs JOB` has its whole output",
    "signal": "see `berth logs JOB`; a kill from outside, or a crash of the program",
}
"""Advice by reason; a reason without advice is shown alone."""


def advice(reason: str, output: Iterable[str] = (), workdir: str = "", detail: str = "") -> str:
    """Return the advice about a failure with this detail and last output, empty if there is none.

    `workdir` is the working directory that the job named.
    """
    if reason == "signal" and detail == "SIGKILL":
        return _OUT_OF_MEMORY
    if reason == "command_missing" and "interpreter" in detail:
        return _INTERPRETER_MISSING
    if reason == "command_missing":
        return _of_missing_command(detail.partition(":")[0])
    if reason != "exit_code":
        return ADVICE.get(reason, "")
    printed = "\n".join(output)
    if _NO_FILE in printed:
        return _NOT_IN.format(workdir=workdir) if workdir else _FILE_MISSING
    if _NO_MODULE in printed:
        return _MODULE_MISSING
    if any(text in printed for text in _NO_MEMORY):
        return _USE_LESS
    return ADVICE[reason]


def _of_missing_command(command: str) -> str:
    if command == "python":
        return _PYTHON_MISSING
    is_relative = "/" in command and not command.startswith("/")
    return _BRING_PROGRAM if is_relative else ADVICE["command_missing"]
