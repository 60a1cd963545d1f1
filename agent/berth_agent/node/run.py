"""`berth-agent run`: wires the parts, and ticks until it is stopped; steps outlive it."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from time import monotonic

from berth_agent import VERSION, file_names
from berth_agent.linux import files
from berth_agent.linux.hierarchies import Hierarchies, open_hierarchies
from berth_agent.messages import (
    ADDRESS_LABEL,
    BUNDLES_LABEL,
    DISK_LABEL,
    HAS_BUNDLES,
    HAS_IMAGES,
    IMAGES_LABEL,
    TMP_LABEL,
    USER_LABEL,
    Failure,
    RegistrationReport,
)
from berth_agent.node import status
from berth_agent.node.agent import Agent
from berth_agent.node.cleaning import Cleaning
from berth_agent.node.config import Config
from berth_agent.node.connection.http import Connection, parse_address
from berth_agent.node.credentials.claim import IdentityClaim
from berth_agent.node.credentials.identity import read_identity
from berth_agent.node.credentials.renewal import Credentials
from berth_agent.node.disk_sweep import DiskSweep
from berth_agent.node.enforcement import end_strays
from berth_agent.node.executor.reporting import Reporting
from berth_agent.node.executor.session import SessionLoop
from berth_agent.node.executor.streaming import Streaming, telemetry_path
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.files.folder_access import check_passage
from berth_agent.node.files.folders import Folders
from berth_agent.node.files.scratch import Scratch
from berth_agent.node.incarnation_store import IncarnationStore
from berth_agent.node.launch.bundles import Bundles
from berth_agent.node.launch.containers import Containers, find_engine
from berth_agent.node.launch.launcher import Launcher
from berth_agent.node.launch.spare_step import SpareStep
from berth_agent.node.system import machine
from berth_agent.node.system.gpu_memory import GpuMemory
from berth_agent.node.system.inventory import Inventory
from berth_agent.node.system.measuring import Measuring
from berth_agent.node.wakeup import Wakeup
from berth_agent.node.workers import Workers
from berth_agent.step.checks import StartRefused
from berth_agent.tokens import NodeTokens

STOP_GRACE_S = 8.0
"""Longest grace of workers that are stopped with the agent."""
LEAVE_S = 2.0
"""Longest wait for the answer to the report that the node leaves."""
STOP_TICK_MS = 100
STOP_S = 15.0
"""After which the agent ends although a worker could not be killed."""

log = logging.getLogger(__name__)


class AlreadyRunning(Exception):
    """Another agent holds the state folder."""


class Runtime:
    """One agent process: it holds the lock of its state folder."""

    def __init__(self, config: Config) -> None:
        """Take up the state.

        Raises AlreadyRunning, IdentityInUse, NoIdentity, OSError, ValueError.
        """
        folders = Folders(config)
        self._lock = files.lock(f"{config.state}/{file_names.LOCK}", wait=False)
        if self._lock is None:
            raise AlreadyRunning(f"{config.state}: in use by another agent")
        self._config = config
        self._identity = read_identity(config.state)
        self._claim = IdentityClaim()
        self._claim.hold(self._identity)
        check_passage(config)
        self._credentials = Credentials(config.state, self._identity)
        self._kernel = machine.probe_kernel(config)
        self._engine = find_engine(config, self._kernel)
        node_id = self._identity.node_id
        self._inventory = Inventory(config)
        gpus = GpuMemory(config, machine.read_machine().boot_id, self._inventory)
        incarnations = IncarnationStore(
            config, machine.read_machine(), lambda: self._credentials.installation, gpus.health
        )
        self._inventory.take_up(incarnations.uuid)

        def tokens() -> NodeTokens:
            return NodeTokens(node_id, incarnations.installation)

        none = Hierarchies([], "")
        self._hierarchies = open_hierarchies(tokens().group) if config.cgroups else none
        self._spare = SpareStep(config.state, tokens)
        scratch = Scratch(config)
        containers = Containers(config, self._engine)
        self._launcher = Launcher(
            config,
            node_id,
            folders,
            self._hierarchies,
            self._kernel,
            scratch,
            self._spare,
            containers,
            Bundles(config, self._connect),
            self._inventory,
        )
        workers = Workers(config, tokens, folders, self._launch, self._spare, self._inventory)
        self.agent = Agent(
            config, node_id, incarnations, workers, self._registration, machine.read_machine
        )
        if incarnations.lease.begun and not end_strays(workers.strays):
            log.error("a process of a worker without an order does not die: the node is fenced")
            incarnations.end_lease()
        folders.retire_unordered()
        self.sessions = SessionLoop(self.agent, self._credentials)
        self._reporting = Reporting(self.agent, self.sessions)
        self._measuring = Measuring(
            config.measure_every_s, self.agent.is_clear, self._inventory.nvml, gpus.note
        )
        self._streaming = Streaming(config, self.agent, self.sessions, self._measuring.take)
        self._cleaning = Cleaning(config, folders, scratch, containers.images)
        self._disk_sweep = DiskSweep(config, self.agent)
        self._wakeup = Wakeup(f"{config.run}/{file_names.WAKE}")
        self._problem = ""

    def run(self) -> int:
        """Tick until SIGTERM; return the exit status."""
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        identity = self._identity
        log.info("agent %s of node %s, pool %s", VERSION, identity.node_id, identity.pool)
        # A node that has left says nothing to an executor.
        self._tick()
        self.sessions.start()
        self._reporting.start()
        self._streaming.start()
        self._measuring.start(self.sessions.stopping)
        self._credentials.start(self.sessions.stopping)
        self._cleaning.start(self.sessions.stopping)
        self._disk_sweep.start(self.sessions.stopping)
        while not stop.is_set():
            self._tick()
            self._wakeup.wait(self.agent.workers)
        if not self._config.keep_workers:
            self._stop_workers()
        self._launcher.close()
        self.sessions.stop()
        self._spare.close()
        self._write_status()
        self._hierarchies.remove()
        return 0

    def _stop_workers(self) -> None:
        """Stop every worker and leave; an executor that is there gets the reports."""
        self.agent.drain("the agent stops, and its workers with it")
        self.agent.stop_all(STOP_GRACE_S)
        self._tick_until(self.agent.is_clear, STOP_S)
        self._tick_until(lambda: self.agent.has_left or not self.sessions.session, LEAVE_S)

    def _tick_until(self, is_done: Callable[[], bool], longest_s: float) -> None:
        ends_s = monotonic() + longest_s
        while not is_done() and monotonic() < ends_s:
            self._tick()
            self._wakeup.wait(self.agent.workers, STOP_TICK_MS)

    def _tick(self) -> None:
        """Run one tick; an error is shown in the status, and the next tick tries again."""
        try:
            self._obey_leave()
            self._claim.hold(self._credentials.identity)
            self.agent.tick()
            self._spare.refill()
            lacking = self.agent.reserve.problem()
            problem = f"disk: {lacking}" if lacking else ""
        except OSError as error:
            problem = f"disk: {error}"
        except Exception as error:
            problem = f"internal: {type(error).__name__}: {error}"
            if problem != self._problem:
                log.exception("a tick of the agent failed")
        if problem and problem != self._problem:
            log.error("%s", problem)
        if self._problem.startswith("disk: ") and not problem:
            log.info("the disk takes writes again: the node works as before")
        self._problem = problem
        self._write_status()

    def _write_status(self) -> None:
        left = status.HAS_LEFT if self.agent.has_left else ""
        lasting = self._credentials.problem or self.agent.incarnations.gpu_health.conditions.problem
        problem = self._problem or left or self.sessions.problem or lasting
        status.write(self._config.run, status.describe(self.agent, self.sessions, problem))

    def _obey_leave(self) -> None:
        """Drain while the file of `berth-agent leave` is there, also after a restart."""
        path = f"{self._config.state}/{file_names.LEAVE}"
        request = files.read_bytes(path)
        if request == b"cancel":
            self.agent.come_back()
            os.unlink(path)
        elif request is not None:
            self.agent.drain("the operator takes the node out of service")
            if request == b"now":
                self.agent.stop_all()

    def _launch(self, allocation: AllocationFolder) -> None:
        """Start a step in a thread: profiles of users and file systems may be slow."""

        def run() -> None:
            failure: Failure | None = None
            try:
                self._launcher.launch(allocation, telemetry_path(self._config, allocation))
            except StartRefused as refusal:
                failure = Failure(
                    reason=refusal.reason, detail=refusal.detail[:1024], permanent=refusal.permanent
                )
            except (OSError, ValueError) as error:
                failure = Failure(reason="step_failed", detail=str(error)[:1024])
            except Exception as error:
                # Without an answer the worker would count as being launched for ever.
                log.exception("the launch of %s failed", allocation.allocation_id)
                detail = f"{type(error).__name__}: {error}"
                failure = Failure(reason="step_failed", detail=detail[:1024])
            self.agent.launched(allocation, failure)
            self._wakeup.wake()

        threading.Thread(target=run, daemon=True, name="launch").start()

    def _registration(self) -> RegistrationReport:
        config, incarnations = self._config, self.agent.incarnations
        stuck = self.agent.workers.stuck_gpus()
        self._inventory.register(incarnations.uuid)
        return RegistrationReport(
            incarnation=incarnations.incarnation,
            boot_id=incarnations.machine.boot_id,
            pid_namespace=incarnations.proof,
            hardware=incarnations.machine.hardware,
            gpu_type=config.gpu_type,
            gpus=self._inventory.count,
            unusable_gpus=tuple(sorted({*self._inventory.unusable, *stuck})),
            cpus=machine.cpu_count(config),
            mem_gib=machine.memory_gib(config),
            rack=config.rack,
            labels={ADDRESS_LABEL: self._address(), **config.labels, **self._world()},
            terms_id=incarnations.lease.terms.terms_id,
            fencing="kernel" if self._kernel.pids else "advice",
            limits=self._hierarchies.limits,
        )

    def _connect(self) -> tuple[str, Connection] | None:
        """Return the id of the present session, and another connection to its executor."""
        session = self.sessions.session
        return None if session is None else (session.session_id, self.sessions.connect(session.url))

    def _world(self) -> dict[str, str]:
        """Return the labels that say how far jobs of this node are kept apart."""
        own_users = os.geteuid() == 0 and bool(self._config.uid_first)
        return {
            TMP_LABEL: "job" if self._kernel.mounts else "shared",
            USER_LABEL: "tenant" if own_users else "agent",
            IMAGES_LABEL: HAS_IMAGES if self._engine else "no",
            BUNDLES_LABEL: HAS_BUNDLES,
            DISK_LABEL: f"{self._config.disk_gib:g} GiB" if self._config.disk_gib else "shared",
        }

    def _address(self) -> str:
        """Return the address of the workers for their peers, towards the control plane."""
        if self._config.address:
            return self._config.address
        session = self.sessions.session
        urls = (session.url,) if session else self._credentials.access().urls
        address = parse_address(urls[0])
        return machine.address_towards(address.host, address.port)


def run(config: Config) -> int:
    """Run the agent of this node. Raises what Runtime raises."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s"
    )
    runtime = Runtime(config)
    if os.geteuid() == 0 and not config.uid_first:
        log.warning("uid_first is 0: jobs of tenants without a user run as root")
    return runtime.run()
