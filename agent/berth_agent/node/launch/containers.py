"""Runs the program of a job in a container of its image, by Podman.

Podman needs no daemon: the container is made below the worker's init, in its pid namespace and its
control groups, so that the kernel ends it with the step as any other worker. Each worker has a
store of its own, in which the images of the node's store can be read; but for what a container
writes to its own files it is in memory, as the engine notes variables in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from berth_agent.core.environment import DEFAULT_PATH, DEVICES, environment
from berth_agent.messages import Launch
from berth_agent.node.config import Config
from berth_agent.node.launch.images import CALL_S, CLIENT, Engine, Images, call
from berth_agent.node.system import machine
from berth_agent.node.system.machine import REPLACED, Kernel
from berth_agent.node.system.users import WorkerUser
from berth_agent.step.checks import StartRefused
from berth_agent.step.world import CONTAINER, VARIABLES
from berth_agent.token_names import TOKEN

ENGINE = "podman"
STORE = "/run/berth-engine"
"""The store of a worker as its engine sees it: Podman takes no path of more than 50 characters."""
STORE_OF_NODE = "{{.Store.GraphDriverName}} {{.Store.GraphRoot}}"
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
CDI_GPU = "nvidia.com/gpu"
NO_OTHER_GPUS = {"NVIDIA_VISIBLE_DEVICES": "void"}
"""In place of what image or job say: a hook of NVIDIA's toolkit, where a node has it, gives GPUs by
this variable, and images of CUDA have `all`. It is the value that specifications of CDI set."""


def find_engine(config: Config, kernel: Kernel) -> Engine | None:
    """Return the engine where this node can run images, else None.

    On a machine with GPUs the engine has to know them (CDI), or containers would see none.
    """
    if not config.images or os.geteuid() != 0 or not (kernel.pids and kernel.mounts):
        return None
    program = shutil.which(ENGINE, path=DEFAULT_PATH) or ""
    if not program or _has_unknown_gpus():
        return None
    try:
        done = call(program, CALL_S, "info", "--format", STORE_OF_NODE)
    except (OSError, subprocess.TimeoutExpired):
        return None
    driver, _, store = done.stdout.strip().partition(" ")
    if done.returncode != 0 or not store:
        return None
    os.makedirs(STORE, mode=0o700, exist_ok=True)
    return Engine(program, driver, store)


def _has_unknown_gpus() -> bool:
    return bool(machine.gpu_uuids()) and not any(
        path.suffix in (".json", ".yaml")
        for folder in CDI_FOLDERS
        for path in Path(folder).glob("*nvidia*")
    )


class Containers:
    """The engine of this node, and the images of its store; used by threads of launches."""

    def __init__(self, config: Config, engine: Engine | None) -> None:
        self._config = config
        self._engine = engine
        self.images = Images(config, engine)

    def specify(
        self,
        launch: Launch,
        image_id: str,
        user: WorkerUser,
        telemetry: str,
        private: str,
        own: Mapping[str, str],
    ) -> dict[str, object]:
        """Return what is particular in the specification of a worker in a container.

        `telemetry` is the folder of its socket. Raises StartRefused.
        """
        assert self._engine is not None, "an image without an engine is refused"
        cwd = os.path.normpath(launch.workdir or private)
        self._check_workdir(cwd, private)
        shown = {**dict.fromkeys(REPLACED, "rw"), **self._config.image_mounts}
        shown |= {telemetry: "ro", private: "rw"}
        return {
            "image": True,
            "argv": self._command(self._engine, launch, image_id, user, shown, cwd, own[DEVICES]),
            "env": {**CLIENT, TOKEN: own[TOKEN]},
            "variables": _variables(launch, {"HOME": private, "TMPDIR": "/tmp"}, own),
            "enter": [self._engine.program, *_store_flags(self._engine)],
            "store": STORE,
            "layers": f"{STORE}/root/{self._engine.driver}",
            "uid": None,
            "cwd": "/",
            "workdir": cwd,
            "kept": [private, telemetry, *self._config.image_mounts],
        }

    def _command(
        self,
        engine: Engine,
        launch: Launch,
        image_id: str,
        user: WorkerUser,
        shown: Mapping[str, str],
        cwd: str,
        devices: str,
    ) -> list[str]:
        """Return the command of the engine; the variables are in a file of its store."""
        uid, gid = user.owner
        words = [engine.program, *_store_flags(engine), "run", "--rm", "--pull=never"]
        words += [
            f"--name={CONTAINER}",
            "--network=host",
            "--ipc=host",
            "--uts=host",
            "--cgroups=disabled",
        ]
        words += ["--ulimit=host", "--log-driver=none", "--http-proxy=false"]
        words += ["--cap-drop=all", "--security-opt=no-new-privileges"]
        # A check of health is a timer of systemd, which would outlive the worker.
        words += ["--no-healthcheck", "--image-volume=ignore", "--systemd=false"]
        words += [f"--umask={self._config.umask}", f"--user={uid}:{gid}", f"--workdir={cwd}"]
        words += [f"--group-add={group}" for group in user.groups if group != gid]
        words += [f"--volume={path}:{path}:{mode}" for path, mode in shown.items()]
        if machine.gpu_uuids():
            words += [f"--device={CDI_GPU}={gpu}" for gpu in devices.split(",") if gpu]
        # The port comes with the order to start, as a variable of the engine.
        words += [f"--env-file={STORE}/{VARIABLES}", "--env=MASTER_PORT"]
        return [*words, f"--entrypoint={json.dumps(list(launch.command))}", image_id]

    def _check_workdir(self, cwd: str, private: str) -> None:
        """Refuse a directory that the container does not see: the job's own folders are empty."""
        folders = [private, *self._config.image_mounts]
        if cwd in REPLACED or any(_is_within(cwd, folder) for folder in folders):
            return
        allowed = ", ".join(self._config.image_mounts) or "none"
        detail = f"{cwd[:200]}: of its node a container sees image_mounts alone: {allowed}"
        if own := next((path for path in REPLACED if _is_within(cwd, path)), ""):
            detail += f"; {own} is its job's own, and empty at first"
        raise StartRefused("workdir_missing", detail, True)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _store_flags(engine: Engine) -> list[str]:
    """Return the flags of a store of its own: pids of other namespaces mean nothing here."""
    return [
        f"--root={STORE}/root",
        f"--runroot={STORE}/run",
        f"--tmpdir={STORE}/tmp",
        f"--runtime-flag=root={STORE}/runtime",
        f"--storage-driver={engine.driver}",
        f"--storage-opt=additionalimagestore={engine.store}",
        "--cgroup-manager=cgroupfs",
        "--events-backend=none",
    ]


def _variables(
    launch: Launch, defaults: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of the container, which are passed a line each. Raises StartRefused."""
    if machine.gpu_uuids() and own[DEVICES].replace(",", "").isdecimal():
        # It sees its own GPUs alone, numbered from 0; instances of MIG keep their names.
        own = {**own, DEVICES: ",".join(map(str, range(len(launch.gpus))))}
    variables = environment(defaults, launch.env, {**own, **NO_OTHER_GPUS})
    if "PATH" not in launch.env:
        # That of the image holds.
        del variables["PATH"]
    for name, value in variables.items():
        if "\n" in value or "\r" in value or not name.isidentifier():
            detail = f"env: {name[:200]}: a line break, or no name of a variable; with an image"
            raise StartRefused("command_unusable", f"{detail} neither can be passed", True)
    return variables
