"""Commands of workers that start a program by the launcher of a framework.

A launcher takes rank and address from the variables that each worker of a gang has, so that such a
job is an ordinary one: it runs on every kind of node, and needs nothing of the services.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FRAMEWORKS = ("torchrun", "jax")
NOT_BUILT = ("ray", "mpi")
GPUS_PER_WORKER = 1.0
"""The default of a job that does not say it."""

INTERPRETER = re.compile(r"python[0-9.]*")
TORCHRUN = (
    'exec "$0" -m torch.distributed.run --nnodes "$WORLD_SIZE" --node_rank "$RANK" '
    '--master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" "$@"'
)
"""Options with `_` are those that every release of torchrun has."""


class BadFramework(ValueError):
    """The framework, or the command for it, cannot be used; the text says why."""


def launched(framework: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a job whose workers start its `command` by a launcher.

    torchrun starts a process per GPU of a worker, jax one per worker with all of its GPUs. Raises
    BadFramework.
    """
    if framework in NOT_BUILT:
        raise BadFramework(f"{framework} is not built yet; {' or '.join(FRAMEWORKS)} is allowed")
    if framework not in FRAMEWORKS:
        raise BadFramework(f"{framework!r}; {' or '.join(FRAMEWORKS)} is allowed")
    command = list(spec.get("command") or ())
    if not command:
        raise BadFramework(f"{framework} needs a command")
    gpus = _whole_gpus(spec.get("gang") or {})
    build = torchrun_command if framework == "torchrun" else jax_command
    return {**spec, "command": build(command, gpus)}


def torchrun_command(command: Sequence[str], processes: int) -> list[str]:
    """Return the command of a worker that starts so many processes by torchrun.

    The Python of the command runs torchrun, `python3` where it names none: a file `*.py` is run by
    it as torchrun does, anything else as it stands.
    """
    is_script = command[0].endswith(".py")
    options = ["--nproc_per_node", str(processes), *([] if is_script else ["--no_python"])]
    return ["sh", "-c", TORCHRUN, _interpreter(command) or "python3", *options, *command]


def jax_command(command: Sequence[str], gpus: int) -> list[str]:
    """Return the command of a worker that is one JAX process. Raises BadFramework."""
    interpreter = _interpreter(command)
    program = list(command[1:] if interpreter else command)
    is_module = program[:1] == ["-m"] and len(program) > 1
    is_script = bool(program) and not program[0].startswith("-")
    if not (is_module or is_script):
        raise BadFramework("jax runs a Python file or `-m MODULE`, without options of Python")
    text = Path(__file__).with_name("launch_jax.py").read_text("utf-8")
    return [interpreter or "python3", "-c", text, str(gpus), *program]


def _interpreter(command: Sequence[str]) -> str:
    """Return the Python that the command begins with, empty if it begins with none."""
    return command[0] if INTERPRETER.fullmatch(command[0].rpartition("/")[2]) else ""


def _whole_gpus(gang: Mapping[str, Any]) -> int:
    """Return the GPUs that a worker sees, at least 1; the gateway refuses what is no number."""
    gpus = gang.get("gpus_per_worker", GPUS_PER_WORKER)
    return max(1, int(gpus)) if isinstance(gpus, int | float) else 1
