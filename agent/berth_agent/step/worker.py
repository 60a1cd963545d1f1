"""Forks the worker: an init in a pid namespace of its own, and the program below it.

The init is there before the order to start, so that a start waits for one fork and not for two.

The init dies with the step (PR_SET_PDEATHSIG), and the kernel kills with it whatever the program
started. It also ends by itself when the lease of the node is over. A program that is itself the
init could not be ended by SIGTERM, and would reap nothing.
"""

from __future__ import annotations

import errno
import os
import resource
import select

from berth_agent.linux import cgroups, json_text, memory, processes, syscalls
from berth_agent.linux.signals import signal
from berth_agent.step import child, world
from berth_agent.step.checks import candidates
from berth_agent.step.guard import LeaseGuard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from berth_agent.step.spec import Spec

START_BYTES = 4096
"""Longest message that starts the program: a write of so many bytes to a pipe is whole."""
STOP, CONTINUE = signal.SIGUSR1, signal.SIGUSR2
"""Signals that let the init stop or continue all processes of its namespace."""


class Worker:
    """A forked worker, which waits until it is released."""

    __slots__ = ("_life", "output", "pid", "status", "ticks")

    def __init__(self, spec: Spec) -> None:
        """Fork the init. Raises OSError."""
        self.output, output_writer = os.pipe()
        self.status, status_writer = os.pipe()
        life_reader, self._life = os.pipe()
        if spec.pid_namespace:
            syscalls.unshare_pids()
        # A SIGTERM waits until the init has a handler for it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        self.pid = os.fork()
        if self.pid == 0:
            _Init(spec, life_reader, output_writer, status_writer).run()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        for descriptor in (output_writer, status_writer, life_reader):
            os.close(descriptor)
        os.set_blocking(self.output, False)
        os.set_blocking(self.status, False)
        self.ticks = processes.started_ticks(self.pid)

    def release(self, variables: Mapping[str, str] | None = None) -> None:
        """Let the program start, with more variables. Its init ends by itself if the step dies
        before."""
        try:
            os.write(self._life, json_text.encode(dict(variables or {})).encode())
        except BrokenPipeError:
            return

    def send(self, number: int) -> None:
        """Signal the init: it passes SIGTERM on to the program's group."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def discard(self) -> None:
        """End a worker whose program was not started; nothing of it lives then."""
        self.kill()
        os.waitpid(self.pid, 0)
        for descriptor in (self.output, self.status, self._life):
            os.close(descriptor)


class _Init:
    """The first process of the worker; it never returns."""

    def __init__(self, spec: Spec, life: int, output: int, status: int) -> None:
        self._spec = spec
        self._life = life
        self._output = output
        self._status = status
        self._program = 0
        self._terminated = False

    def run(self) -> NoReturn:
        code = 1
        try:
            close_others({self._life, self._output, self._status})
            guard = LeaseGuard(self._spec)
            # In the view of a container its groups of version 2 cannot be reached.
            cgroups.join(self._spec.cgroups)
            world.enter(self._spec)
            self._die_with_step()
            self._take_signals()
            guard.begin(self._end_at_deadline)
            if message := os.read(self._life, START_BYTES):
                self._spec.env |= json_text.decode(message.decode())
                self._start()
                code = 0
        except OSError as error:
            self._send_status(f"F{error.errno or 0}")
        finally:
            os._exit(code)

    def _die_with_step(self) -> None:
        """Have the kernel kill this process with the step, and exit if the step has ended already.

        Then nothing holds the other end of the pipe by which it lets the program start.
        """
        syscalls.set_death_signal(signal.SIGKILL)
        poll = select.poll()
        poll.register(self._life, 0)
        if any(events & select.POLLHUP for _, events in poll.poll(0)):
            os._exit(1)

    def _take_signals(self) -> None:
        child.reset_signals()
        signal.signal(signal.SIGTERM, self._on_term)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if self._spec.pid_namespace:
            # -1 means all other processes of the namespace, and of nothing else.
            signal.signal(STOP, lambda *_: _signal_all(signal.SIGSTOP))
            signal.signal(CONTINUE, lambda *_: _signal_all(signal.SIGCONT))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def _on_term(self, *_: object) -> None:
        self._terminated = True
        if self._program:
            terminate(self._program)

    def _end_at_deadline(self) -> None:
        """End the worker in place of a step that waits for its disk, and looks as if it had.

        With this process the kernel ends its namespace. Without one, what it started is killed
        again and again, and the worker ends as usual.
        """
        if self._spec.pid_namespace:
            self._send_status(f"W{int(signal.SIGKILL)}")
            os._exit(1)
        cgroups.kill(self._spec.cgroups)
        processes.kill_each(processes.descendants())

    def _start(self) -> None:
        """Fork the program, reap what it leaves, and pass its wait status on."""
        init = os.getpid()
        program = os.fork()
        if program == 0:
            self._execute(init)
        os.close(self._output)
        self._program = program
        if self._terminated:
            terminate(program)
        memory.release_file_pages()
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == program:
                self._send_status(f"W{status}")
                return

    def _execute(self, init: int) -> NoReturn:
        try:
            child.reset_signals()
            if self._terminated:
                os._exit(128 + signal.SIGTERM)
            os.setsid()
            reset_oom_score()
            child.confine(self._spec)
            bound_processes(self._spec.max_pids)
            syscalls.set_death_signal(signal.SIGKILL)
            if os.getppid() != init:
                os._exit(1)
            os.chdir(self._spec.cwd)
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(self._output, 1)
            os.dup2(self._output, 2)
            exec_first(candidates(self._spec), self._spec.argv, self._spec.env)
        except OSError as error:
            self._send_status(f"X{error.errno or 0}")
        finally:
            os._exit(1)

    def _send_status(self, message: str) -> None:
        os.write(self._status, f"{message}\n".encode())


def terminate(program: int) -> None:
    """Send SIGTERM to the group of a program, or to it alone while it does not lead one yet.

    One that has ended and was reaped a moment ago gets none, and its own end counts.
    """
    for send in (os.killpg, os.kill):
        try:
            send(program, signal.SIGTERM)
        except ProcessLookupError:
            continue
        return


def close_others(kept: set[int]) -> None:
    """Close what belongs to the step: its locks end with it."""
    for entry in os.listdir("/proc/self/fd"):
        descriptor = int(entry)
        if descriptor > 2 and descriptor not in kept:
            try:
                os.close(descriptor)
            except OSError:
                continue


def bound_processes(most: int) -> None:
    """Bound the processes of this user in this user namespace, where no control group does."""
    if most:
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (bound, bound))


def exec_first(paths: list[str], argv: list[str], variables: dict[str, str]) -> None:
    """Become the first program that can be run. Raises OSError.

    `os.execvpe` imports a module, which the worker's user may not be able to read.
    """
    problem: OSError = FileNotFoundError(errno.ENOENT, "not in PATH")
    for path in paths:
        try:
            os.execve(path, argv, variables)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problem = error
    raise problem


def _signal_all(number: int) -> None:
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        return


def reset_oom_score() -> None:
    """Raise a negative OOM score to 0: the agent's unit may protect the agent, not its workers."""
    try:
        with open("/proc/self/oom_score_adj", "r+") as file:
            if int(file.read()) < 0:
                file.write("0")
    except (OSError, ValueError):
        return
