"""Programs of terminals: forked by the step, so that they live within its worker and end with it.

The agent makes a folder for each below `terminals`: the request and FIFOs. It holds `life` open for
as long as the terminal may live, and reads from `status` the letters below.
"""

from __future__ import annotations

import os
import select

from berth_agent import file_names
from berth_agent.linux import cgroups, files, processes, syscalls
from berth_agent.linux.signals import signal
from berth_agent.step import child
from berth_agent.step.checks import candidates_of
from berth_agent.step.worker import close_others, exec_first, reset_oom_score
from berth_agent.step.world import CONTAINER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from berth_agent.step.spec import Spec

STARTED, FAILED, ENDED = "S", "F", "W"
"""Its program is about to run; could not, with an error number; ended, with a wait status."""
MARK = "BERTH_TERMINAL"
"""Variable with the id of the terminal, by which what its program leaves is found."""
HANGUP_MS = 2000
"""Between the SIGHUP to the programs of a terminal that was left, and their SIGKILL."""
MOST = 16
"""Terminals of a worker."""
SHELL = "/bin/sh"
NO_SHELLS = ("", "nologin", "false")
ANY_SHELL = (SHELL, "-c", "command -v bash >/dev/null && exec bash; exec sh")
"""Of a container, whose shells are not known here."""


class Terminals:
    """The terminals of one worker; `worker_pid` is its init."""

    def __init__(self, folder: str, spec: Spec, worker_pid: int, poll: select.poll) -> None:
        self._folder = f"{folder}/{file_names.TERMINALS}"
        self._spec = spec
        self._worker_pid = worker_pid
        self._poll = poll
        self._known: set[str] = set()
        self._open: dict[str, _Terminal] = {}

    def look(self, now_ms: int, held: bool) -> None:
        """Start what was requested since the last look, and end what was left.

        While the worker is stopped nothing starts: it could continue the worker.
        """
        present = self._present()
        for name in () if held else sorted(present - self._known):
            if os.path.exists(f"{self._folder}/{name}/{file_names.REQUEST}"):
                self._known.add(name)
                self._begin(name)
        self._known &= present
        for name, terminal in list(self._open.items()):
            if terminal.look(now_ms):
                del self._open[name]

    def _present(self) -> set[str]:
        """Return the names of the folders: mostly none, and an error for that takes memory."""
        try:
            return set(os.listdir(self._folder)) if os.access(self._folder, os.F_OK) else set()
        except FileNotFoundError:
            return set()

    def next_ms(self) -> int:
        """Return the ms until something is due."""
        left = any(terminal.hung_up_ms is not None for terminal in self._open.values())
        return HANGUP_MS // 10 if left else 1_000_000

    def _begin(self, name: str) -> None:
        folder = f"{self._folder}/{name}"
        try:
            status = os.open(f"{folder}/{file_names.STATUS_FIFO}", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            # The agent is gone.
            return
        try:
            if len(self._open) >= MOST:
                raise OSError(11, f"{MOST} terminals are open")
            self._open[name] = _Terminal(
                self._spec, folder, name, self._worker_pid, status, self._poll
            )
        except (OSError, ValueError, KeyError) as error:
            _note(status, f"{FAILED}{getattr(error, 'errno', 0) or 0}")
            os.close(status)


class _Terminal:
    """One program, its status, and the pipe that is open while the agent serves it."""

    def __init__(
        self, spec: Spec, folder: str, name: str, worker_pid: int, status: int, poll: select.poll
    ) -> None:
        """Fork the program. Raises OSError, ValueError, KeyError."""
        self.hung_up_ms: int | None = None
        self._mark = name
        self._status = status
        self._poll = poll
        request: dict[str, Any] = files.read_json(f"{folder}/{file_names.REQUEST}")
        self._life = os.open(f"{folder}/{file_names.LIFE_FIFO}", os.O_RDONLY | os.O_NONBLOCK)
        mounts = os.open(f"/proc/{worker_pid}/ns/mnt", os.O_RDONLY)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _Program(spec, folder, name, request, status, mounts).run()
        except OSError:
            os.close(self._life)
            raise
        finally:
            os.close(mounts)
        self._process = os.pidfd_open(self.pid)
        poll.register(self._process, select.POLLIN)
        poll.register(self._life, 0)

    def look(self, now_ms: int) -> bool:
        """End a terminal that the agent serves no more; return whether its program has ended."""
        ended = self._reap()
        if ended is None and self.hung_up_ms is None and self._is_left():
            self.hung_up_ms = now_ms
            self._poll.unregister(self._life)
            self._signal(signal.SIGHUP)
            self._signal(signal.SIGCONT)
        elif ended is None and self.hung_up_ms is not None:
            if now_ms - self.hung_up_ms >= HANGUP_MS:
                self._signal(signal.SIGKILL)
        elif ended is not None:
            # What the program left, in other sessions too.
            processes.kill_each(self._marked())
            _note(self._status, f"{ENDED}{ended}")
            self._close()
        return ended is not None

    def _reap(self) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return int(signal.SIGKILL)
        return status if pid else None

    def _is_left(self) -> bool:
        poll = select.poll()
        poll.register(self._life, 0)
        return bool(poll.poll(0))

    def _signal(self, number: int) -> None:
        # A negative pid is a group: what has cleared its environment is mostly in that.
        processes.kill_each([-self.pid, *self._marked()], number)

    def _marked(self) -> list[int]:
        return list(processes.with_token(self._mark, (MARK,)))

    def _close(self) -> None:
        self._poll.unregister(self._process)
        if self.hung_up_ms is None:
            self._poll.unregister(self._life)
        for descriptor in (self._process, self._life, self._status):
            os.close(descriptor)


class _Program:
    """The forked child, which becomes the program of a terminal; it never returns."""

    def __init__(
        self, spec: Spec, folder: str, name: str, request: dict[str, Any], status: int, mounts: int
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._name = name
        self._request = request
        self._status = status
        self._mounts = mounts

    def run(self) -> NoReturn:
        try:
            child.reset_signals()
            os.setsid()
            self._take_streams()
            cgroups.join(self._spec.cgroups)
            self._enter_mounts()
            close_others({self._status})
            reset_oom_score()
            child.confine(self._spec)
            syscalls.set_death_signal(signal.SIGKILL)
            os.chdir(self._spec.cwd)
            variables = self._variables()
            argv = self._argv()
            _note(self._status, STARTED)
            exec_first(candidates_of(argv[0], variables), argv, variables)
        except OSError as error:
            _note(self._status, f"{FAILED}{error.errno or 0}")
        finally:
            os._exit(127)

    def _take_streams(self) -> None:
        """Open the terminal, which becomes the controlling one, or the FIFOs. Raises OSError."""
        if tty := str(self._request["tty"]):
            streams = [os.open(tty, os.O_RDWR)] * 3
        else:
            streams = [
                os.open(f"{self._folder}/{name}", flags)
                for name, flags in (("in", os.O_RDONLY), ("out", os.O_WRONLY), ("err", os.O_WRONLY))
            ]
        for number, stream in enumerate(streams):
            os.dup2(stream, number)

    def _enter_mounts(self) -> None:
        """See the folders that the worker sees. Raises OSError."""
        own, others = os.stat("/proc/self/ns/mnt"), os.fstat(self._mounts)
        if (own.st_dev, own.st_ino) != (others.st_dev, others.st_ino):
            syscalls.enter_namespace(self._mounts, syscalls.CLONE_NEWNS)

    def _added(self) -> dict[str, str]:
        term = str(self._request["term"])
        return {MARK: self._name, **({"TERM": term} if term else {})}

    def _variables(self) -> dict[str, str]:
        return self._spec.env if self._spec.image else {**self._spec.env, **self._added()}

    def _argv(self) -> list[str]:
        command: list[str] = list(self._request["command"])
        if not self._spec.image:
            return command or [_shell_of(self._spec.env)]
        words = [*self._spec.enter, "exec", "--interactive"]
        words += ["--tty"] if self._request["tty"] else []
        words += [f"--env={name}={value}" for name, value in self._added().items()]
        return [*words, CONTAINER, *(command or ANY_SHELL)]


def _shell_of(variables: dict[str, str]) -> str:
    """Return the user's shell: the variables of the worker are already those of a login."""
    shell = variables.get("SHELL", "")
    usable = shell.rpartition("/")[2] not in NO_SHELLS and os.access(shell, os.X_OK)
    return shell if usable else SHELL


def _note(status: int, message: str) -> None:
    try:
        os.write(status, f"{message}\n".encode())
    except OSError:
        return
