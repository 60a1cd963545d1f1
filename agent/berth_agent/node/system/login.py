"""The environment of a login shell, read once per user."""

from __future__ import annotations

import json
import logging
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from berth_agent.core.environment import DEFAULT_PATH, parse_environment
from berth_agent.node.config import Config
from berth_agent.node.system.machine import isolated_command
from berth_agent.node.system.users import WorkerUser
from berth_agent.step import login_shell
from berth_agent.step.spec import Spec
from berth_agent.token_names import TOKEN

LIMIT_S = 15.0
SPARE_S = 15.0
"""Time for the process around the shell, beyond that of the shell."""
OWN = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "BASH_ENV", "INVOCATION_ID", "JOURNAL_STREAM"})
"""Variables of the shell itself, and of the agent's unit."""

log = logging.getLogger(__name__)


class LoginEnvironments:
    """Environments by user; a profile that fails or hangs leaves that of /etc/environment.

    Used by threads, which do not wait for each other: a profile is code of a tenant.
    """

    def __init__(self, config: Config, pid_namespaces: bool) -> None:
        self._config = config
        self._pid_namespaces = pid_namespaces
        self._known: dict[int | None, dict[str, str]] = {}

    def of_user(
        self, user: WorkerUser, home: str, token: str, groups: Sequence[str]
    ) -> tuple[dict[str, str], str]:
        """Return the variables that a worker of the user begins with, and why some are left out.

        HOME is the given one; `token` marks the shell and `groups` are its control groups. It is
        read again with the next worker where the profile failed, or HOME is a worker's own folder
        with files in it, which are not those of the next.
        """
        problem = ""
        is_common = bool(user.home) or not os.listdir(home)
        known = self._known.get(user.uid)
        if known is None:
            known, problem = self._read(user, home, token, groups)
        if is_common and not problem:
            self._known[user.uid] = known
        return {**known, "HOME": home, **self._config.environment}, problem

    def _read(
        self, user: WorkerUser, home: str, token: str, groups: Sequence[str]
    ) -> tuple[dict[str, str], str]:
        variables = {"PATH": DEFAULT_PATH, **_system_environment()}
        if user.name:
            variables |= {"USER": user.name, "LOGNAME": user.name}
        if not self._config.login_shell or not os.path.exists(login_shell.SHELL):
            return variables, ""
        marked = {**variables, "HOME": home, TOKEN: token}
        answer = _run_shell(_shell_spec(user, marked, groups, self._pid_namespaces))
        if "variables" not in answer:
            problem = f"login shell: {answer['problem']}; its variables are left out"
            log.warning("user %s: %s", user.name or user.uid, problem)
            return variables, problem
        fresh = {name: value for name, value in answer["variables"].items() if name not in OWN}
        return {**variables, **fresh}, ""


def _system_environment() -> dict[str, str]:
    try:
        return parse_environment(Path("/etc/environment").read_text(errors="replace"))
    except OSError:
        return {}


def _shell_spec(
    user: WorkerUser, variables: dict[str, str], groups: Sequence[str], pid_namespace: bool
) -> Spec:
    """Return the shell as a worker that starts at once and may take `LIMIT_S`."""
    unused = dict.fromkeys(Spec.__slots__, "")
    return Spec(
        {
            **unused,
            "argv": login_shell.COMMAND,
            "env": variables,
            "cwd": "/",
            "uid": user.uid,
            "owner": user.uid,
            "gid": user.gid,
            "groups": list(user.groups),
            "umask": 0o077,
            "cgroups": list(groups),
            "pid_namespace": pid_namespace,
            "hook_s": LIMIT_S,
        }
    )


def _run_shell(spec: Spec) -> dict[str, Any]:
    """Return `variables`, or a `problem`. The shell dies with the process around it."""
    command = isolated_command("from berth_agent.step.login_shell import main; sys.exit(main())")
    request = json.dumps(spec.to_json()).encode()
    limit_s = spec.hook_s + SPARE_S
    try:
        done = subprocess.run(
            command, input=request, stdout=subprocess.PIPE, timeout=limit_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"problem": str(error)}
    if not done.stdout:
        return {"problem": f"exit code {done.returncode} of the process around it"}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
