"""Services begin as copies of the supervisor, which has read their code already.

Reading it costs a second of CPU: as much as everything else that a killed service does before it
decides again, and eleven times that when a stack starts. A copy has the pages in common with all
others until it writes to them. Whatever could differ from a new interpreter makes one: code that is
no longer what was read, other values of the variables that it was read with, Python's own among
them, and any other command than `python -P -m PACKAGE`.
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

THREADED = frozenset({"services.priority"})
"""onnxruntime starts threads when it is imported, which a copy would lack: it imports it itself."""
PR_SET_PDEATHSIG = 1
OF_THE_INTERPRETER = "PYTHON"
"""It looks at variables of this prefix once, when it starts."""
NOBODYS = "\0"
"""In the place of a variable that is not there."""


class Seen(MutableMapping[str, str]):
    """The environment, which notes what is asked of it: code that is read may look at it once."""

    def __init__(self, real: MutableMapping[str, str]) -> None:
        self._real = real
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return self._real[name]

    def __setitem__(self, name: str, value: str) -> None:
        self._real[name] = value

    def __delitem__(self, name: str) -> None:
        del self._real[name]

    def __iter__(self) -> Iterator[str]:
        self.asked.update(self._real)
        return iter(self._real)

    def __len__(self) -> int:
        return len(self._real)


class Warm:
    """The code of some packages, read; `begin` runs one of them in this process."""

    def __init__(self, commands: Iterable[str]) -> None:
        self._tie = tied("TERM")
        self._head = [*self._tie, sys.executable, "-P", "-m"]
        found = (self._package_of(shlex.split(command)) for command in commands)
        self._packages = {package for package in found if package is not None}
        self._read: dict[str, tuple[int, int]] = {}
        self._asked: dict[str, str] = {}
        self._pid = os.getpid()

    def read(self) -> None:
        """What the packages' `__main__` import; what cannot be imported says so when it runs."""
        real = os.environ
        seen = Seen(real)
        os.environ = seen  # type: ignore[assignment]  # noqa: B003
        for package in sorted(self._packages - THREADED):
            main = f"{package}.__main__"
            with suppress(Exception, SystemExit):
                importlib.import_module(main)
            sys.modules.pop(main, None)
        os.environ = real  # noqa: B003
        self._asked = {name: real.get(name, NOBODYS) for name in seen.asked}
        files = (getattr(each, "__file__", None) for each in list(sys.modules.values()))
        self._read = {path: _version(path) for path in files if path}
        # The collector would write to every page, and each copy would have its own.
        gc.collect()
        gc.freeze()

    def takes(self, argv: Sequence[str], env: Mapping[str, str]) -> bool:
        """Can a copy of this process do what the command would?"""
        package = self._package_of(argv)
        return (
            package in self._packages
            and bool(self._read)
            and _of_the_interpreter(env) == _of_the_interpreter(os.environ)
            and all(env.get(name, NOBODYS) == value for name, value in self._asked.items())
            and all(_version(path) == version for path, version in self._read.items())
        )

    def begin(self, argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
        """Be that command, in a process that was forked for it, to its end."""
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._tie:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != self._pid:  # It ended before it could be asked for.
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
    """supervisord's hands: they fork, and then begin where they can instead of `execve`."""

    warm: Warm | None = None

    def execve(self, filename: str, argv: list[str], env: dict[str, str]) -> None:
        if self.warm is not None and self.warm.takes(argv, env):
            self.warm.begin(argv, env)
        super().execve(filename, argv, env)


def _to_the_end(package: str) -> NoReturn:
    """What the interpreter does around a program."""
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
    """A package runs by its `__main__`; a module alone would run as soon as it is imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return False
    within = spec.submodule_search_locations if spec is not None else None
    return within is not None and PathFinder.find_spec(f"{package}.__main__", within) is not None


def _version(path: str) -> tuple[int, int]:
    """Of a file; one that is not there has one too."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _of_the_interpreter(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(OF_THE_INTERPRETER)}
