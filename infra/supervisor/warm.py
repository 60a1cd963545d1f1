"""Services start as forks of the supervisor, which has imported their code.

Importing costs a second of CPU, half of a service's recovery time, and eleven times that at the
start of a stack. Forks share memory pages until they write. A new interpreter is started instead if
a fork could differ from it: changed source files, other values of variables read while importing or
of Python's own, or any command other than `python -P -m PACKAGE`. See docs/decisions/0016.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import importlib.util
import os
import runpy
import shlex
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from typing import NoReturn

from setproctitle import setproctitle
from supervisor.options import ServerOptions

from infra.machine.process import tied

THREADED = frozenset({"services.failslow", "services.priority"})
"""Imported after the fork: onnxruntime and numpy start threads on import, which forks lose."""
PR_SET_PDEATHSIG = 1
OF_THE_INTERPRETER = "PYTHON"
"""Prefix of the variables that the interpreter reads at its start."""
MISSING = "\0"
"""Value that stands for a missing variable."""


class RecordedEnvironment(MutableMapping[str, str]):
    """An environment that records which variables are read."""

    def __init__(self, real: MutableMapping[str, str]) -> None:
        self._real = real
        self.names_read: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names_read.add(name)
        return self._real[name]

    def __setitem__(self, name: str, value: str) -> None:
        self._real[name] = value

    def __delitem__(self, name: str) -> None:
        del self._real[name]

    def __iter__(self) -> Iterator[str]:
        self.names_read.update(self._real)
        return iter(self._real)

    def __len__(self) -> int:
        return len(self._real)


class Warm:
    """Imported packages; `begin` runs one of them in this process."""

    def __init__(self, commands: Iterable[str]) -> None:
        self._tie = tied("TERM")
        self._head = [*self._tie, sys.executable, "-P", "-m"]
        candidates = (self._package_of(shlex.split(command)) for command in commands)
        self._packages = {package for package in candidates if package is not None}
        self._read: dict[str, tuple[int, int]] = {}
        self._variables_read: dict[str, str] = {}
        self._pid = os.getpid()

    def read(self) -> None:
        """Import the packages; an import error is reported when the package runs."""
        real = os.environ
        recorded = RecordedEnvironment(real)
        os.environ = recorded  # type: ignore[assignment]  # noqa: B003
        for package in sorted(self._packages - THREADED):
            main = f"{package}.__main__"
            with suppress(Exception, SystemExit):
                importlib.import_module(main)
            sys.modules.pop(main, None)
        os.environ = real  # noqa: B003
        self._variables_read = {name: real.get(name, MISSING) for name in recorded.names_read}
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        self._read = {path: _version(path) for path in files if path}
        # The collector would write to every page, and each copy would have its own.
        gc.collect()
        gc.freeze()

    def can_run(self, argv: Sequence[str], env: Mapping[str, str]) -> bool:
        """Return whether a fork of this process is equivalent to the command."""
        package = self._package_of(argv)
        return (
            package in self._packages
            and bool(self._read)
            and _of_the_interpreter(env) == _of_the_interpreter(os.environ)
            and all(env.get(name, MISSING) == value for name, value in self._variables_read.items())
            and all(_version(path) == version for path, version in self._read.items())
        )

    def begin(self, argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
        """Run the command in this forked process, to its end."""
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._tie:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != self._pid:  # It ended before the signal was set up.
                os._exit(128 + signal.SIGTERM)
        # Before the environment changes, after which there is no place for a title.
        setproctitle(shlex.join(argv[len(self._tie) :]))
        os.environ.clear()
        os.environ.update(env)
        sys.argv = [argv[-1]]
        _to_the_end(argv[-1])

    def _package_of(self, argv: Sequence[str]) -> str | None:
        *head, package = argv
        return package if head == self._head and _has_main(package) else None


class WarmOptions(ServerOptions):  # type: ignore[misc]
    """Server options of supervisord that run a package in the fork instead of `execve`."""

    warm: Warm | None = None

    def execve(self, filename: str, argv: list[str], env: dict[str, str]) -> None:
        if self.warm is not None and self.warm.can_run(argv, env):
            self.warm.begin(argv, env)
        super().execve(filename, argv, env)


def _to_the_end(package: str) -> NoReturn:
    """Run a package as the interpreter would, with its exit handling."""
    code = 0
    try:
        runpy.run_module(package, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = _exit_code(ended)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    with suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def _exit_code(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    sys.stderr.write(f"{ended.code}\n")
    return 1


def _has_main(package: str) -> bool:
    """Return whether the module is a package with a `__main__`."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return False
    within = spec.submodule_search_locations if spec is not None else None
    return within is not None and PathFinder.find_spec(f"{package}.__main__", within) is not None


def _version(path: str) -> tuple[int, int]:
    """Return (mtime, size) of a file, (0, 0) if missing."""
    try:
        candidates = os.stat(path)
    except OSError:
        return 0, 0
    return candidates.st_mtime_ns, candidates.st_size


def _of_the_interpreter(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(OF_THE_INTERPRETER)}
