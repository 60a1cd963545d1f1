"""The environment of a login shell, read once per user."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

from berth_agent.core.environment import DEFAULT_PATH, parse_environment
from berth_agent.node.config import Config
from berth_agent.node.users import WorkerUser

SHELL = "/bin/bash"
LIMIT_S = 15.0
MAX_BYTES = 256 * 1024
OWN = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "BASH_ENV", "INVOCATION_ID", "JOURNAL_STREAM"})
"""Variables of the shell itself, and of the agent's unit."""


class LoginEnvironments:
    """Environments by user; a profile that fails or hangs leaves that of /etc/environment."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._known: dict[int | None, dict[str, str]] = {}
        self._lock = threading.Lock()

    def of_user(self, user: WorkerUser, home: str) -> dict[str, str]:
        """Return the variables that a worker of the user begins with; HOME is the given one."""
        with self._lock:
            if user.uid not in self._known:
                self._known[user.uid] = self._read(user, home)
            variables = dict(self._known[user.uid])
        variables["HOME"] = home
        return {**variables, **self._config.environment}

    def _read(self, user: WorkerUser, home: str) -> dict[str, str]:
        variables = {"PATH": DEFAULT_PATH, **_system_environment()}
        if user.name:
            variables |= {"USER": user.name, "LOGNAME": user.name}
        if not self._config.login_shell or not os.path.exists(SHELL):
            return variables
        return {**variables, **_shell_environment(user, {**variables, "HOME": home})}


def _system_environment() -> dict[str, str]:
    try:
        return parse_environment(Path("/etc/environment").read_text(errors="replace"))
    except OSError:
        return {}


def _shell_environment(user: WorkerUser, variables: dict[str, str]) -> dict[str, str]:
    """Run `bash -lc env` as the user; all of it is killed when its time is over."""
    process = subprocess.Popen(
        [SHELL, "-lc", "env -0"],
        env=variables,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        user=user.uid,
        group=None if user.uid is None else user.gid,
        extra_groups=None if user.uid is None else list(user.groups),
    )
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {}
    if process.returncode != 0 or len(output) > MAX_BYTES:
        return {}
    pairs = (entry.partition("=") for entry in output.decode(errors="replace").split("\0"))
    return {name: value for name, sign, value in pairs if sign and name not in OWN}
