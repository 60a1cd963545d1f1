"""Prepares a worker: user, directory, environment, limits, port; and starts its step."""

from __future__ import annotations

import os
import random
import re
import socket
from collections.abc import Callable, Container

from berth_agent import file_names
from berth_agent.core.environment import environment, own_variables
from berth_agent.linux import cgroups, files
from berth_agent.linux.hierarchies import Hierarchies
from berth_agent.messages import Launch
from berth_agent.node.config import Config
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.files.folders import Folders
from berth_agent.node.files.scratch import Scratch
from berth_agent.node.launch.bundles import Bundles
from berth_agent.node.launch.containers import STORE, Containers
from berth_agent.node.launch.spare_step import SpareStep, StartTimedOut
from berth_agent.node.system.inventory import Inventory
from berth_agent.node.system.login import LoginEnvironments
from berth_agent.node.system.machine import Kernel
from berth_agent.node.system.users import Users, WorkerUser
from berth_agent.step.checks import StartRefused
from berth_agent.step.spec import Spec

MIB = 2**20
LENT = "/proc/sys/net/ipv4/ip_local_port_range"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Launcher:
    """Used by threads; what is slow happens here, and not under the agent's lock."""

    def __init__(
        self,
        config: Config,
        node_id: str,
        folders: Folders,
        hierarchies: Hierarchies,
        kernel: Kernel,
        scratch: Scratch,
        spare: SpareStep,
        containers: Containers,
        bundles: Bundles,
        inventory: Inventory,
    ) -> None:
        self._config = config
        self._inventory = inventory
        self._spare = spare
        self._node_id = node_id
        self._folders = folders
        self._hierarchies = hierarchies
        self._kernel = kernel
        self._scratch = scratch
        self._containers = containers
        self._bundles = bundles
        self._users = Users(config)
        self._login = LoginEnvironments(config, kernel.pids)

    def launch(self, allocation: AllocationFolder, telemetry: str) -> None:
        """Write the specification and start the step. Raises StartRefused, OSError."""
        try:
            spec = self._specify(allocation, telemetry)
            files.replace_json(allocation.path(file_names.SPEC), spec.to_json())
        except BaseException:
            self._spare.drop(allocation.token)
            raise
        try:
            code, errors = self._spare.start(allocation.token, allocation.folder)
        except StartTimedOut as error:
            raise StartRefused("step_failed", str(error), False) from None
        if code != 0 and not allocation.is_step_alive():
            detail = errors[-300:] or allocation.step_log()
            raise StartRefused("step_failed", detail or "the step did not start", False)

    def _specify(self, allocation: AllocationFolder, telemetry: str) -> Spec:
        launch = allocation.launch
        _check_command(launch)
        image_id = self._pull(allocation) if launch.image else ""
        user = self._users.user_of(launch.tenant, launch.tenant_number, launch.user)
        attempt = UNSAFE.sub("_", f"{launch.job_id}.{launch.attempt}")
        private = self._folders.make_work(allocation, f"{attempt}.{launch.rank}", user.owner)
        login, problem = dict[str, str](), ""
        if not image_id:
            login, problem = self._read_login(allocation, user, user.home or private)
        if launch.bundle:
            self._place_bundle(allocation, private, user)
        own = own_variables(
            launch,
            node_id=self._node_id,
            token=allocation.token,
            telemetry=telemetry,
            devices=self._inventory.devices(launch.gpus),
        )
        env = environment({"TMPDIR": private, **login}, launch.env, own)
        cwd = launch.workdir or private
        sockets = os.path.dirname(telemetry)
        mounts = self._make_scratch(allocation, attempt, user)
        contained: dict[str, object] = {}
        if image_id:
            contained = self._containers.specify(launch, image_id, user, sockets, private, own)
            mounts.append([self._scratch.make_store(attempt, launch.rank), STORE])
        return Spec(
            {
                "argv": list(launch.command),
                "env": {**env, "PWD": cwd},
                "cwd": cwd,
                "private": not launch.workdir,
                "workdir": cwd,
                "uid": user.uid,
                "owner": user.uid,
                "gid": user.gid,
                "groups": list(user.groups),
                "umask": int(self._config.umask, 8),
                "token": allocation.token,
                "incarnation": allocation.order.incarnation,
                "grace_s": launch.grace_s,
                "walltime_s": launch.walltime_s,
                "kill_s": self._config.kill_s,
                "output_bytes": round(self._config.output_mib * MIB),
                "cgroups": self._make_groups(os.path.basename(allocation.folder), launch),
                "pid_namespace": self._kernel.pids,
                "mounts": mounts,
                "max_pids": self._config.max_pids if self._kernel.counts_pids else 0,
                "seccomp": self._config.seccomp and not launch.image,
                "kept": [private, sockets, os.path.normpath(cwd)],
                "lease": f"{self._config.run}/{file_names.LEASE}",
                "wake": f"{self._config.run}/{file_names.WAKE}",
                "reserve": self._config.reserve_path,
                "prolog": self._config.prolog,
                "epilog": self._config.epilog,
                "hook_env": own,
                "secrets": allocation.secrets_file,
                "notes": [problem] if problem else [],
                "hook_s": self._config.hook_s,
                **contained,
            }
        )

    def close(self) -> None:
        """End what still runs of launches."""
        self._bundles.close()
        self._containers.images.close()

    def _pull(self, allocation: AllocationFolder) -> str:
        """Pull the image until the worker is stopped."""
        image, stopped = allocation.launch.image, _stop_of(allocation)
        return self._containers.images.pull(image, allocation.token, stopped)

    def _place_bundle(self, allocation: AllocationFolder, folder: str, user: WorkerUser) -> None:
        """Fill the directory of the worker, within limits that count for it alone."""
        name = f"{os.path.basename(allocation.folder)}-bundle"
        groups = self._make_groups(name, allocation.launch)
        try:
            self._bundles.place(allocation, folder, user, groups, _stop_of(allocation))
        finally:
            cgroups.remove(groups)

    def _make_scratch(
        self, allocation: AllocationFolder, name: str, user: WorkerUser
    ) -> list[list[str]]:
        if not self._kernel.mounts:
            return []
        return self._scratch.make(allocation, name, user.owner)

    def _read_login(
        self, allocation: AllocationFolder, user: WorkerUser, home: str
    ) -> tuple[dict[str, str], str]:
        """Read the login within limits as the worker's, in groups that count for it alone."""
        groups = self._make_groups(
            f"{os.path.basename(allocation.folder)}-login", allocation.launch
        )
        try:
            return self._login.of_user(user, home, allocation.token, groups)
        finally:
            cgroups.remove(groups)

    def _make_groups(self, name: str, launch: Launch) -> list[str]:
        return cgroups.create(
            self._hierarchies.parents,
            name,
            launch.cpus,
            round(launch.mem_gib * 1024) * MIB,
            self._config.max_pids,
        )


def _stop_of(allocation: AllocationFolder) -> Callable[[], str]:
    """Return a function that returns why the worker is stopped, by an order or the end of its
    lease; empty: it is not."""

    def stopped() -> str:
        stop = allocation.tombstone() or allocation.noted_stop()
        return str(stop["reason"]) if stop else ""

    return stopped


def _check_command(launch: Launch) -> None:
    if not launch.command or not launch.command[0]:
        raise StartRefused("no_command", "command: empty; a program is allowed", True)
    names = launch.env
    values = [*launch.command, *names, *names.values(), launch.workdir]
    if not all(map(_is_passable, values)) or any("=" in n or not n for n in names):
        detail = "command or env: a NUL, half a character, or = in a variable's name"
        raise StartRefused("command_unusable", detail, True)
    if launch.workdir and not launch.workdir.startswith("/"):
        detail = f"workdir: {launch.workdir[:200]}; an absolute path is allowed"
        raise StartRefused("workdir_missing", detail, True)


def _is_passable(value: str) -> bool:
    """Return whether the kernel takes the string; JSON may hold halves of surrogate pairs."""
    try:
        return b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def free_port(first: int, count: int, taken: Container[int]) -> int | None:
    """Return a port of the range on which nothing listens, and that no other gang was given.

    Ports that the kernel chooses for clients come last: one could have it before rank 0 binds it.
    """
    lent = _lent_ports()
    ports = random.sample(range(first, first + count), count)
    for port in sorted(ports, key=lambda port: port in lent):
        if port not in taken and _is_free(port):
            return port
    return None


def _lent_ports() -> range:
    """Return the ports that the kernel chooses for clients; none if it does not say."""
    try:
        with open(LENT) as file:
            first, last = map(int, file.read().split())
    except (OSError, ValueError):
        return range(0)
    return range(first, last + 1)


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
