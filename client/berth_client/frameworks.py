"""Commands of workers that start a program by the launcher of a framework.

A launcher takes rank and address from the variables that each worker of a gang has, so that such a
job is an ordinary one: it runs on every kind of node, and needs nothing of the services.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

FRAMEWORKS = ("torchrun", "jax", "ray", "mpi")
GPUS_PER_WORKER, CPUS_PER_WORKER, MEM_GIB_PER_WORKER = 1.0, 1.0, 1.0
"""The defaults of a job that does not say it."""
KEY, KEY_FILE = "GANG_KEY", "GANG_KEY_FILE"
"""Variables with the secret by which the ranks of a gang know each other, or with its file."""
KEY_RULE = f"several workers need --env {KEY}=secret://NAME (docs/frameworks.md#ray)"

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

    torchrun starts a process per GPU of a worker, jax one per worker with all of its GPUs, ray the
    command once, on rank 0 of a Ray cluster of the workers, and mpi a process per GPU or, without
    GPUs, per core. Raises BadFramework.
    """
    if framework not in FRAMEWORKS:
        raise BadFramework(f"{framework!r}; {' or '.join(FRAMEWORKS)} is allowed")
    command = list(spec.get("command") or ())
    if not command:
        raise BadFramework(f"{framework} needs a command")
    gang = spec.get("gang") or {}
    if framework in OF_GANGS:
        _check_key(spec, gang)
        return {**spec, "command": OF_GANGS[framework](command, gang)}
    build = torchrun_command if framework == "torchrun" else jax_command
    return {**spec, "command": build(command, max(1, _whole_gpus(gang)))}


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
    return [interpreter or "python3", "-c", _text("launch_jax"), str(gpus), *program]


def ray_command(command: Sequence[str], gang: Mapping[str, Any]) -> list[str]:
    """Return the command of a worker that is a node of Ray with the resources of the worker.

    The Python of the command runs Ray, `python3` where it names none.
    """
    mem_gib = _number(gang, "mem_gib_per_worker", MEM_GIB_PER_WORKER)
    resources = [str(_whole_gpus(gang)), str(_whole_cpus(gang)), f"{mem_gib:g}"]
    return _of_the_gang("launch_ray", resources, command)


def mpi_command(command: Sequence[str], gang: Mapping[str, Any]) -> list[str]:
    """Return the command of a worker that is a host of MPI."""
    return _of_the_gang("launch_mpi", [str(_whole_gpus(gang) or _whole_cpus(gang))], command)


OF_GANGS = {"ray": ray_command, "mpi": mpi_command}
"""Those whose rank 0 starts programs on the other ranks."""


def _of_the_gang(launcher: str, words: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return a launcher of several modules with its own words, then the program to start."""
    interpreter = _interpreter(command) or "python3"
    program = [interpreter, *command] if command[0].endswith(".py") else list(command)
    return [interpreter, "-c", *_modules(launcher), *words, *program]


def _modules(launcher: str) -> list[str]:
    """Return the arguments of Python that run a launcher of the whole gang."""
    names = ("launch_program", "launch_gang", launcher)
    texts = [word for name in names for word in (name, _text(name))]
    return [_text("launch_modules"), *texts, "--"]


def _text(module: str) -> str:
    return Path(__file__).with_name(f"{module}.py").read_text("utf-8")


def _check_key(spec: Mapping[str, Any], gang: Mapping[str, Any]) -> None:
    """Raise BadFramework for workers without a secret in common; one worker alone needs none."""
    env = spec.get("env") or {}
    key = str(env.get(KEY, ""))
    is_alone = gang.get("workers", 1) == 1 and not spec.get("elastic")
    if key and not key.startswith("secret://"):
        raise BadFramework(f"{KEY} is a secret: --env {KEY}=secret://NAME")
    if not (is_alone or key or env.get(KEY_FILE)):
        raise BadFramework(KEY_RULE)


def _interpreter(command: Sequence[str]) -> str:
    """Return the Python that the command begins with, empty if it begins with none."""
    return command[0] if INTERPRETER.fullmatch(command[0].rpartition("/")[2]) else ""


def _whole_gpus(gang: Mapping[str, Any]) -> int:
    """Return the GPUs that a worker sees: one of which it has a part counts as one."""
    return ceil(_number(gang, "gpus_per_worker", GPUS_PER_WORKER))


def _whole_cpus(gang: Mapping[str, Any]) -> int:
    return max(1, int(_number(gang, "cpus_per_worker", CPUS_PER_WORKER)))


def _number(gang: Mapping[str, Any], name: str, default: float) -> float:
    """Return a number of the gang, the default for what is none, which the gateway refuses."""
    value = gang.get(name, default)
    return float(value) if isinstance(value, int | float) else default
