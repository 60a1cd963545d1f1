"""A started worker, until nothing of it lives."""

from __future__ import annotations

import os
import select

from berth_agent.linux import cgroups, memory, processes
from berth_agent.linux.clocks import boot_ms
from berth_agent.linux.signals import signal
from berth_agent.step import world
from berth_agent.step.injected_worker import InjectedWorker
from berth_agent.step.limits import Limits
from berth_agent.step.outcome import Outcome
from berth_agent.step.pause import Pause
from berth_agent.step.sweep import sweep
from berth_agent.step.terminals import Terminals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from berth_agent.step.output import OutputLog
    from berth_agent.step.spec import Spec
    from berth_agent.step.state import StateFile
    from berth_agent.step.watch import FolderWatch
    from berth_agent.step.worker import Worker

POLL_MS = 1000
SWEEP_MS = 20
WARNING = signal.SIGUSR1
"""Sent before the walltime to processes that have a handler for it."""


class Run:
    """Obeys stops, the lease and the walltime."""

    def __init__(
        self,
        worker: Worker,
        spec: Spec,
        state: StateFile,
        output: OutputLog,
        watch: FolderWatch,
        spared: int,
    ) -> None:
        """`spared` is a child of the step that is no part of the worker."""
        self.worker = worker
        self.outcome = Outcome()
        self._spec = spec
        self._state = state
        self._output = output
        self._watch = watch
        self._spared = spared
        self._limits = Limits(spec, boot_ms())
        self._started_ms = boot_ms()
        self._killed_ms: int | None = None
        self._init_dead = False
        self._pause = Pause(spec, self.worker)
        self._injected_worker = InjectedWorker(
            spec, output, watch, lambda: bool(self._limits.ending.reason)
        )
        self._frozen = False
        self._stuck = False
        self._terminals: Terminals | None = None

    def release_if(self, allowed: bool, variables: Mapping[str, str]) -> None:
        """Let the program start, or end the init that waits for it.

        Nothing is read from the disk from the look at the lease to here: that might take long.
        """
        self._started_ms = boot_ms()
        self._limits = Limits(self._spec, self._started_ms)
        if allowed:
            self.worker.release(variables)
        else:
            self._limits.ending.request("fenced", self._started_ms, 0)

    def watch(self, wake: int) -> None:
        """Return when nothing of the worker lives."""
        poll = select.poll()
        init = os.pidfd_open(self.worker.pid)
        for descriptor in (self.worker.output, self.worker.status, wake, init):
            poll.register(descriptor, select.POLLIN)
        self._terminals = Terminals(self._watch.folder, self._spec, self.worker.pid, poll)
        idle = False
        while not self._is_over(boot_ms()):
            ready = [descriptor for descriptor, _ in poll.poll(self._patience_ms())]
            if not ready and not idle:
                idle = True
                memory.release_file_pages()
            if wake in ready:
                os.read(wake, 4096)
            if init in ready:
                self._reap_init()
                poll.unregister(init)
            if self.worker.output in ready and not self._output.pump(self.worker.output):
                poll.unregister(self.worker.output)
            if self.worker.status in ready and not self._read_status():
                poll.unregister(self.worker.status)
        self._output.pump(self.worker.output)
        self._close(init)

    def _is_over(self, now_ms: int) -> bool:
        """Apply the limits at this time; return whether nothing lives any more."""
        self._watch.look()
        lease = self._watch.lease
        self._limits.apply(self._watch.tombstone, lease, now_ms)
        if warning := self._limits.warning(now_ms):
            self._warn(warning)
        if not self._init_dead:
            doubtful = lease.is_doubtful(now_ms) and not lease.is_over(now_ms)
            self._note_frozen(doubtful)
            self._pause.hold(doubtful or self._injected_worker.stops_at(now_ms))
            self._signal(now_ms)
        if self._terminals is not None:
            self._terminals.look(now_ms, self._pause.stopped)
        over = self._init_dead and not self._sweep()
        if not over:
            self._note_stuck(now_ms)
        return over

    def _warn(self, warning: str) -> None:
        """Signal the processes of the worker that can take it, so that they save their work."""
        pids = processes.descendants(self._spared)
        # The init obeys this signal in another way, and the others would be ended by it.
        if self._spec.image:
            pids = [pid for pid in pids if world.is_inside(pid)]
        warned = [p for p in pids if p != self.worker.pid and processes.handles(p, WARNING)]
        processes.kill_each(warned, WARNING)
        to = f"; SIGUSR1 is sent to {len(warned)} of its processes" if warned else ""
        self._output.note(f"{warning}{to}")

    def _signal(self, now_ms: int) -> None:
        """Send what is due. A note may wait for the disk: it comes later, and none before a
        deadline.
        """
        match self._limits.ending.signal_at(now_ms):
            case "term":
                self.worker.send(signal.SIGTERM)
                if self._limits.ending.reason != "fenced":
                    self._state.try_note("stopping")
            case "kill":
                self._killed_ms = self._killed_ms or now_ms
                cgroups.kill(self._spec.cgroups)
                self.worker.send(signal.SIGKILL)

    def _note_frozen(self, is_frozen: bool) -> None:
        if is_frozen != self._frozen:
            self._frozen = is_frozen
            self._output.note("stopped until the lease is renewed" if is_frozen else "continued")

    def _reap_init(self) -> None:
        _, status = os.waitpid(self.worker.pid, 0)
        self._init_dead = True
        self._read_status()
        now_ms = boot_ms()
        self._killed_ms = self._killed_ms or now_ms
        self.outcome.ran_ms = max(0, now_ms - self._started_ms)
        self.outcome.take_init_status(status)

    def _sweep(self) -> bool:
        """Kill what the program left without a namespace; return whether something lives."""
        return not self._spec.pid_namespace and sweep(self._spec.cgroups, self._spared)

    def _note_stuck(self, now_ms: int) -> None:
        if self._killed_ms is None or self._stuck:
            return
        if now_ms - self._killed_ms >= self._spec.kill_s * 1000:
            self._stuck = True
            self._state.try_note("stuck")

    def _read_status(self) -> bool:
        """Read the init's messages; return whether more may come."""
        try:
            message = os.read(self.worker.status, 4096)
        except BlockingIOError:
            return True
        self.outcome.take_messages(message.decode())
        return bool(message)

    def _patience_ms(self) -> int:
        if self._init_dead:
            return SWEEP_MS
        now_ms = boot_ms()
        due_ms = min(
            self._limits.next_ms(self._watch.lease, now_ms), self._injected_worker.next_ms(now_ms)
        )
        terminals_ms = self._terminals.next_ms() if self._terminals is not None else POLL_MS
        return max(1, min(POLL_MS, due_ms, terminals_ms))

    def _close(self, init: int) -> None:
        """Judge the end; the groups, which counted, go with it."""
        oom = cgroups.oom_kills(self._spec.cgroups) > 0
        detail = str((self._watch.tombstone or {}).get("detail", ""))
        self.outcome.judge(self._limits.ending.reason, self._spec, oom, detail)
        cgroups.remove(self._spec.cgroups)
        for descriptor in (init, self.worker.output, self.worker.status):
            os.close(descriptor)
