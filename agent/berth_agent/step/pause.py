"""Stops and continues the processes of a worker, and of nothing else."""

from __future__ import annotations

from berth_agent.linux import processes
from berth_agent.linux.clocks import boot_ms
from berth_agent.linux.signals import signal
from berth_agent.step import worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from berth_agent.step.spec import Spec
    from berth_agent.step.worker import Worker

LIST_AGAIN_MS = 1000
"""Between two looks for new processes of a worker that is stopped again and again."""


class Pause:
    """In a pid namespace its init signals all; else they are found by the worker's token."""

    def __init__(self, spec: Spec, worker: Worker) -> None:
        self._spec = spec
        self._worker = worker
        self.stopped = False
        self._known: list[tuple[int, int]] = []
        """Pid and start of the worker's processes, as they were last listed."""
        self._listed_ms = 0

    def hold(self, stopped: bool) -> None:
        """Stop or continue the worker; SIGKILL ends stopped processes too."""
        if stopped == self.stopped:
            return
        self.stopped = stopped
        if self._spec.pid_namespace:
            self._worker.send(worker.STOP if stopped else worker.CONTINUE)
        else:
            self._signal(signal.SIGSTOP if stopped else signal.SIGCONT)

    def _signal(self, number: int) -> None:
        """Signal each process that is the one that was listed: a pid may be another's by now."""
        now_ms = boot_ms()
        if now_ms - self._listed_ms >= LIST_AGAIN_MS:
            pids = set(processes.with_token(self._spec.token)) - {self._worker.pid}
            self._known = [(pid, processes.started_ticks(pid)) for pid in pids]
            self._listed_ms = now_ms
        for pid, ticks in self._known:
            processes.kill(pid, ticks, number)
