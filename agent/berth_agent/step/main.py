"""The step process: prepares, starts and watches one worker, and notes its end."""

from __future__ import annotations

import os
import select
import sys

from berth_agent import file_names
from berth_agent.linux import files, syscalls
from berth_agent.linux.clocks import boot_ms
from berth_agent.linux.signals import signal
from berth_agent.step import checks, secrets, spec
from berth_agent.step.hooks import EpilogProcess
from berth_agent.step.output import OutputLog
from berth_agent.step.run import Run
from berth_agent.step.state import StateFile
from berth_agent.step.watch import FolderWatch
from berth_agent.step.worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from berth_agent.step.spec import Spec

POLL_MS = 1000
LINES, CHARS = 20, 512
"""Of the output in a report."""


class Step:
    """One life of a step: it is never started twice in one folder."""

    def __init__(self, folder: str, specification: Spec) -> None:
        self._folder = folder
        self._spec = specification
        self._state = StateFile(folder, specification.wake, specification.reserve)
        self._output = OutputLog(folder, specification.output_bytes)
        self._watch = FolderWatch(folder, specification)
        self._wake = _wake_descriptor()
        self._epilog = EpilogProcess(specification) if specification.epilog else None

    def begin(self) -> None:
        """Take the name, and note that the step lives. Raises OSError."""
        syscalls.become_subreaper()
        syscalls.set_name("berth-step")
        self._state.note("preparing", ends_by_disk=True)

    def run(self) -> None:
        """Run the worker from its checks to its end."""
        for line in self._spec.notes:
            self._output.note(line)
        try:
            worker = self._prepare()
        except checks.StartRefused as refusal:
            self._end_refused(refusal)
            return
        try:
            run = self._start(worker) if self._wait_for_go() else None
        except OSError as error:
            worker.discard()
            self._end_refused(checks.StartRefused("start_failed", str(error), False))
            return
        if run is None:
            worker.discard()
            self._end_unstarted()
        else:
            run.watch(self._wake)
            self._end(run)

    def _prepare(self) -> Worker:
        """Take the secrets, run the prolog and the checks, and fork the init, which waits.

        Raises StartRefused.
        """
        secrets.take(self._spec)
        if self._spec.prolog:
            self._output.write(checks.run_prolog(self._spec))
        checks.check_start(self._spec)
        try:
            worker = Worker(self._spec)
        except OSError as error:
            raise checks.StartRefused("start_failed", str(error), False) from None
        self._state.note("prepared", init_pid=worker.pid, init_ticks=worker.ticks)
        return worker

    def _wait_for_go(self) -> bool:
        """Return whether the agent ordered the start, before it ordered the end or the lease was
        over."""
        while not self._watch.has_go():
            self._watch.look()
            if self._watch.tombstone is not None or self._watch.lease.is_over(boot_ms()):
                return False
            _wait(self._wake)
        return True

    def _start(self, worker: Worker) -> Run | None:
        """Start the program under the folder's lock, unless a stop or the lease forbids it."""
        lock = files.lock(f"{self._folder}/{file_names.LOCK}", wait=True)
        try:
            self._watch.look()
            if self._watch.tombstone is not None or not self._watch.lease.may_start(boot_ms()):
                return None
            variables = self._watch.variables()
            run = self._begin_run(worker, variables)
            # Noting took time, perhaps a lot: the lease is looked at last.
            self._watch.look()
            run.release_if(self._watch.lease.may_start(boot_ms()), variables)
            return run
        finally:
            if lock is not None:
                os.close(lock)

    def _begin_run(self, worker: Worker, variables: dict[str, str]) -> Run:
        """Note that the worker runs, before it does."""
        self._spec.env |= variables
        self._state.note("running", started=True, began_ms=boot_ms())
        spared = self._epilog.pid if self._epilog else 0
        return Run(worker, self._spec, self._state, self._output, self._watch, spared)

    def _end_unstarted(self) -> None:
        self._finish()
        stopped = self._watch.tombstone is not None
        failure = None if stopped else _failure("fenced", "the lease of the node is over", False)
        self._state.note_end("dead", stopped=stopped, failure=failure)

    def _end_refused(self, refusal: checks.StartRefused) -> None:
        self._output.write(refusal.output)
        lines = self._output.last_lines(LINES, CHARS)
        self._finish()
        failure = _failure(refusal.reason, refusal.detail, refusal.permanent, lines)
        self._state.note_end("dead", failure=failure)

    def _end(self, run: Run) -> None:
        end = run.outcome
        lines = self._output.last_lines(LINES, CHARS)
        if self._spec.image and lines:
            end.judge_engine(lines[-1])
        failure = _failure(end.reason, end.detail, end.permanent, lines) if end.reason else None
        self._finish()
        self._state.note_end(
            "dead",
            stopped=self._watch.tombstone is not None,
            exit_code=end.exit_code,
            ran_ms=end.ran_ms,
            failure=failure,
        )

    def _finish(self) -> None:
        if self._epilog is not None:
            self._output.write(self._epilog.finish())
        self._output.close()


def main(arguments: list[str]) -> int:
    """Detach, and run the step of a folder; return once it is known to live or not to start."""
    folder = arguments[0]
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        # The step closes it once its first state is on disk, or ends.
        return 0 if os.read(reader, 1) else 1
    os.close(reader)
    _detach(folder)
    alive = files.lock(f"{folder}/{file_names.ALIVE}", wait=False)
    if alive is None or os.path.exists(f"{folder}/{file_names.STATE}"):
        os._exit(0)
    step = Step(folder, spec.read(folder))
    step.begin()
    os.write(writer, b"1")
    os.close(writer)
    step.run()
    os._exit(0)


def _detach(folder: str) -> None:
    """Leave the agent's session; what goes wrong is written to a file of the folder."""
    os.setsid()
    os.chdir("/")
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    os.dup2(0, 1)
    log = os.open(f"{folder}/{file_names.STEP_LOG}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _wake_descriptor() -> int:
    """Return a descriptor that becomes readable when the agent sends SIGUSR1."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _wait(wake: int) -> None:
    """Wait for the agent, at most a poll: the clocks of timers stop while the machine sleeps."""
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    if poll.poll(POLL_MS):
        os.read(wake, 4096)


def _failure(
    reason: str, detail: str, permanent: bool, lines: list[str] | None = None
) -> dict[str, object]:
    return {
        "reason": reason,
        "detail": detail[:1024],
        "permanent": permanent,
        "output": lines or [],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
