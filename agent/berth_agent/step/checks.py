"""Checks before a start, as the worker's user: can this command run in this directory?"""

from __future__ import annotations

import os
import stat

from berth_agent.step import child, world

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from berth_agent.step.spec import Spec

SHOWN_CHARS = 200
SHEBANG_BYTES = 256
"""As many bytes of a script the kernel reads for its interpreter (BINPRM_BUF_SIZE)."""
UNREACHABLE = "workdir_unreachable"
NODE_CLOSED = "node_folder_closed"
"""Reason of a private directory that its worker may not enter: another node may do better."""


class StartRefused(Exception):
    """The worker cannot start; `permanent` means that it never can, on any such node."""

    def __init__(self, reason: str, detail: str, permanent: bool, output: bytes = b"") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.permanent = permanent
        self.output = output


def check_start(spec: Spec) -> None:
    """Raise StartRefused if the directory or the command is missing or forbidden.

    A command that can run has a directory, unless the job has one of that name in a folder that its
    workers see in place of the machine's: only then, or if it cannot run, the directory is checked.
    """
    if world.replaced(spec, spec.cwd):
        _check(spec, lambda: _directory_problem(spec))
    try:
        _check(spec, lambda: _command_problem(spec), within=True)
    except StartRefused as refusal:
        if refusal.reason != UNREACHABLE:
            _check(spec, lambda: _directory_problem(spec))
        raise


def _check(spec: Spec, problem: Callable[[], str], *, within: bool = False) -> None:
    """Raise StartRefused for a problem, `reason<tab>detail`, that the worker's user has.

    `within`: as its program sees the machine, else as the agent does.
    """

    def find() -> None:
        if within:
            world.look(spec)
        child.take_identity(spec)
        os.write(1, problem().encode("utf-8", errors="replace"))

    try:
        code, output = child.run(find, spec.hook_s)
    except child.TimedOut as error:
        raise StartRefused(UNREACHABLE, f"{spec.cwd}: {error}", False) from None
    reason, separator, detail = output.decode("utf-8", errors="replace").partition("\t")
    if separator:
        raise StartRefused(reason, detail, reason != NODE_CLOSED)
    if code != 0:
        raise StartRefused("check_failed", reason.strip()[:SHOWN_CHARS], False)


def run_prolog(spec: Spec) -> bytes:
    """Run the operator's prolog and return its output. Raises StartRefused."""
    try:
        code, output = child.run(lambda: execute_hook(spec.prolog, spec), spec.hook_s)
    except child.TimedOut as error:
        raise StartRefused("prolog_failed", f"{spec.prolog}: {error}", False) from None
    if code != 0:
        detail = f"{spec.prolog}: exit code {code}; 0 is allowed"
        raise StartRefused("prolog_failed", detail, False, output)
    return output


def execute_hook(path: str, spec: Spec) -> None:
    """Become a prolog or epilog, which sees what Berth set, and nothing of the job's own.

    It may run as root: a variable of the tenant could name a library to load. Raises OSError.
    """
    variables = {**spec.hook_env, "PATH": os.defpath, "BERTH_WORKDIR": spec.workdir}
    os.execve(path, [path], variables)


def candidates(spec: Spec) -> list[str]:
    """Return where the program may be; a name without a slash is looked up in PATH."""
    return candidates_of(spec.argv[0], spec.env)


def candidates_of(name: str, variables: dict[str, str]) -> list[str]:
    """Return where a program may be, by the PATH of these variables."""
    if "/" in name:
        return [name]
    path = variables.get("PATH", os.defpath)
    return [os.path.join(folder, name) for folder in path.split(os.pathsep)]


def _directory_problem(spec: Spec) -> str:
    folder = spec.cwd
    try:
        os.chdir(folder)
    except PermissionError:
        reason = NODE_CLOSED if spec.private else "workdir_forbidden"
        return f"{reason}\t{folder}: user {os.getuid()} may not enter {_first_closed(folder)}"
    except OSError as error:
        return f"workdir_missing\t{folder}: {error.strerror}"
    return ""


def _first_closed(folder: str) -> str:
    """Return the uppermost of the folder and those above it that this user may not enter."""
    parts = folder.rstrip("/").split("/")
    above = ["/".join(parts[:count]) or "/" for count in range(1, len(parts))]
    return next((path for path in above if not os.access(path, os.X_OK)), folder)


def _command_problem(spec: Spec) -> str:
    os.chdir(spec.cwd)
    name = spec.argv[0]
    shown = name[:SHOWN_CHARS]
    present = [candidate for candidate in candidates(spec) if os.path.isfile(candidate)]
    allowed = next((path for path in present if os.access(path, os.X_OK)), None)
    if allowed is not None:
        return _interpreter_problem(allowed, shown)
    if present:
        mode = stat.S_IMODE(os.stat(present[0]).st_mode)
        rule = f"user {os.getuid()} may not execute {present[0]}, whose mode is {mode:03o}"
        return f"command_forbidden\t{shown}: {rule}"
    if name.startswith("/"):
        place = "is a directory" if os.path.isdir(name) else "no such file on this node"
        if hidden := world.replaced(spec, name):
            place = f"no such file: {hidden} is the job's own, of the node's it sees its workdir"
        return f"command_missing\t{shown}: {place}"
    return f"command_missing\t{shown}: not in {'PATH' if '/' not in name else spec.cwd}"


def _interpreter_problem(path: str, shown: str) -> str:
    """Return that a script names an interpreter that is not there: the kernel says that the script
    itself is not, as after a line that ends as Windows ends it."""
    try:
        with open(path, "rb") as file:
            line = file.read(SHEBANG_BYTES).partition(b"\n")[0]
    except OSError:
        # A program that may be executed and not read is none of a script.
        return ""
    # Blanks and tabs alone end its name: a carriage return is a part of it.
    interpreter = os.fsdecode(line[2:].replace(b"\t", b" ").strip(b" ").partition(b" ")[0])
    if line[:2] != b"#!" or not interpreter or os.path.exists(interpreter):
        return ""
    ending = "; its lines end with CR LF" if line.endswith(b"\r") else ""
    rule = f"its interpreter {ascii(interpreter)} does not exist on this node{ending}"
    return f"command_missing\t{shown}: {rule}"
