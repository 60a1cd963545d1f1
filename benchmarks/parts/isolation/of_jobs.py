"""Cases that a job of the attacker tries on its node; each returns what leaked, or nothing."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path

from benchmarks.parts.command import Json
from benchmarks.parts.isolation.two_tenants import (
    LEFT_BY_BLUE,
    MARKER,
    MARKER_IN_PARTS,
    SETTLE_S,
    TwoTenants,
)

MIB = 2**20
FILLER = "filler"
MEMORY_MIB = 700
"""More than the quarter of a GiB that the job requests."""
WORD = rb"[A-Za-z0-9._+/=-]{20,}"
"""A key or a password."""
HASH_CHARS = 12
SECRET_FOLDERS = {"secrets", "passwords"}
ROOTS = ("/run", "/etc", "/data", "/inside", "/node", "/var/lib", "/home", "/root", "/tmp")
"""Where a node may have files of the control plane."""
WALK = f"""
import os, sys
marker = ({MARKER_IN_PARTS}).encode()
def look(path):
    # A FIFO would wait for its writer.
    if not os.path.isfile(path) and not path.startswith("/proc"):
        return
    try:
        with open(path, "rb") as file:
            if marker in file.read(1 << 20):
                print("leaked", path)
    except OSError:
        pass
"""


def python(program: str) -> str:
    return f"python3 - <<'END'\n{program}\nEND"


def forks_without_end(tenants: TwoTenants) -> str:
    """The job is refused forks, and ends with all that it forked."""
    job_id = tenants.submit(tenants.red, "bomb() { bomb | bomb & }; bomb; sleep 4; exit 0")
    tenants.ended(job_id)
    return survivors(tenants, job_id)


def fills_memory(tenants: TwoTenants) -> str:
    row, _ = tenants.attack(python(f"x = bytearray({MEMORY_MIB} << 20); print(len(x))"))
    reason = tenants.failure(row)
    return "" if reason == "out_of_memory" else f"it ended as {row['phase']} {reason}".strip()


def fills_disk(tenants: TwoTenants) -> str:
    """The job ends for what it has written, which goes at once."""
    size_mib = round(tenants.node.disk_gib * 1024) + 256
    script = f"head -c {size_mib}M /dev/zero > {FILLER} && exec sleep 600"
    job_id = tenants.submit(tenants.red, script)
    row = tenants.ended(job_id)
    if (reason := tenants.failure(row)) != "disk_limit":
        return f"it ended as {row['phase']} {reason}".strip()
    ends_s, work = time.monotonic() + SETTLE_S, tenants.node.on_machine(tenants.node.state / "work")
    while left := [*work.glob(f"*/{FILLER}")]:
        if time.monotonic() > ends_s:
            return f"{left[0]} is left"
        time.sleep(0.2)
    return ""


def fills_disk_without_a_name(tenants: TwoTenants) -> str:
    """The job ends for a file that it has deleted and keeps open."""
    size_mib = round(tenants.node.disk_gib * 1024) + 256
    script = f"exec 3> {FILLER}; rm {FILLER}; head -c {size_mib}M /dev/zero >&3 && exec sleep 600"
    row = tenants.ended(tenants.submit(tenants.red, script))
    reason = tenants.failure(row)
    return "" if reason == "disk_limit" else f"it ended as {row['phase']} {reason}".strip()


def fills_log(tenants: TwoTenants) -> str:
    """The output on the node is cut, and its end can be read."""
    # Long lines: what is kept is streamed at `lines_per_s`.
    line = "0123456789abcdef" * 200
    row, output = tenants.attack(f"yes {line} | head -n 25000; echo the end")
    if row["phase"] != "succeeded":
        return f"it ended as {row['phase']}"
    if output[-1:] != ["the end"]:
        return "the last line of its output is not shown"
    state = tenants.node.on_machine(tenants.node.state)
    folders = [path.parent for path in state.rglob("output.log.*")]
    largest = max(
        (sum(p.stat().st_size for p in folder.glob("output.log.*")) for folder in folders),
        default=0,
    )
    bound = 2 * tenants.node.output_mib * MIB
    return "" if largest <= bound else f"{largest / MIB:.0f} MiB of output were kept"


def ignores_sigterm(tenants: TwoTenants) -> str:
    job_id = tenants.submit(tenants.red, "trap '' TERM INT HUP; while :; do sleep 1; done")
    tenants.until(job_id, ("running",))
    tenants.cancel(tenants.red, job_id)
    row = tenants.ended(job_id)
    return survivors(tenants, job_id) or ("" if row["phase"] == "cancelled" else str(row["phase"]))


def leaves_its_session(tenants: TwoTenants) -> str:
    """Processes that have gone out of session, group and parent end with the job."""
    daemon = "setsid sh -c 'setsid sleep 600 & sleep 600' > /dev/null 2>&1 &"
    job_id = tenants.submit(tenants.red, f"{daemon} {daemon} sleep 1; exit 0")
    tenants.ended(job_id)
    return survivors(tenants, job_id)


def survivors(tenants: TwoTenants, job_id: str) -> str:
    ends_s = time.monotonic() + SETTLE_S
    while left := tenants.processes_of(job_id):
        if time.monotonic() > ends_s:
            return f"{len(left)} processes are left"
        time.sleep(0.2)
    return ""


def reads_proc_of_others(tenants: TwoTenants) -> str:
    """No variables, command line or memory map of another tenant's processes can be read."""
    program = """
for pid in os.listdir("/proc"):
    if pid.isdigit() and int(pid) != os.getpid():
        for name in ("environ", "cmdline"):
            look(f"/proc/{pid}/{name}")
"""
    return leaked(tenants.attack(python(WALK + program)))


def signals_others(tenants: TwoTenants) -> str:
    """The neighbour's processes take no signal of the attacker."""
    pids = " ".join(str(pid) for pid in tenants.processes_of(tenants.neighbour))
    row, _ = tenants.attack(f"kill -KILL {pids}; exit 0")
    seen = tenants.ticks()
    return (
        "" if tenants.ticks_on(seen) else f"the neighbour was ended, by a job that {row['phase']}"
    )


def reads_leftovers(tenants: TwoTenants) -> str:
    """Nothing that another tenant left in folders for all can be read."""
    program = f"""
for root in ("/tmp", "/var/tmp", "/dev/shm"):
    look(os.path.join(root, {LEFT_BY_BLUE!r}))
for root in ({str(tenants.node.state)!r}, {str(tenants.node.run)!r}):
    for folder, _, names in os.walk(root):
        for name in names:
            if not folder.startswith(os.getcwd()):
                look(os.path.join(folder, name))
"""
    return leaked(tenants.attack(python(WALK + program)))


def opens_files_of_the_agent(tenants: TwoTenants) -> str:
    """Identity, lease and orders of the node can be neither read nor written."""
    program = f"""
import stat
own = os.getcwd()
for root in ({str(tenants.node.state)!r}, {str(tenants.node.run)!r}):
    for folder, names, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            if path.startswith(own):
                continue
            try:
                mode = os.stat(path).st_mode
                if stat.S_ISREG(mode) and (os.access(path, os.R_OK) or os.access(path, os.W_OK)):
                    print("leaked", path)
            except OSError:
                pass
"""
    return leaked(tenants.attack(python("import os\n" + program)))


def connects_to_sockets_of_the_agent(tenants: TwoTenants) -> str:
    """Sockets of the agent and of other workers take no connection."""
    node = tenants.node
    seen = (path for path in node.on_machine(node.run).rglob("*") if path.is_socket())
    sockets = [str(node.on_node(path)) for path in seen]
    program = f"""
import os, socket
own = os.environ.get("BERTH_TELEMETRY", "")
for path in {sockets!r}:
    try:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.settimeout(2)
                s.connect(path)
                if os.path.realpath(path) != os.path.realpath(own):
                    print("leaked", path)
    except OSError:
        pass
"""
    return leaked(tenants.attack(python(program)))


def reads_credentials_of_the_control_plane(tenants: TwoTenants) -> str:
    """Keys and passwords of the services can be read neither as files nor in /proc.

    The job knows their hashes, and looks for them in all that it may read.
    """
    hashes = sorted(hashes_of(tenants.control_plane))
    if not hashes:
        return f"{tenants.control_plane} has no secrets to look for"
    program = f"""
import hashlib, os, re, stat
known, theirs = set({hashes!r}), {str(tenants.control_plane)!r}
def look(path):
    with open(path, "rb") as file:
        for word in re.findall({WORD!r}, file.read(1 << 16)):
            if hashlib.sha256(word).hexdigest()[:{HASH_CHARS}] in known:
                return True
def each():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        yield from (f"/proc/{{pid}}/environ", f"/proc/{{pid}}/cmdline")
    for root in ({", ".join(map(repr, ROOTS))}, theirs):
        for folder, _, names in os.walk(root):
            yield from (os.path.join(folder, name) for name in names)
for path in each():
    try:
        if path.startswith("/proc/") or stat.S_ISREG(os.stat(path).st_mode):
            if path.startswith(theirs) and os.access(path, os.R_OK) or look(path):
                print("leaked", path)
    except OSError:
        pass
"""
    return leaked(tenants.attack(python(program)))


def hashes_of(folder: Path) -> set[str]:
    """Return the first digits of the SHA-256 of each key and password of a control plane."""
    secrets, public = set[bytes](), set[bytes]()
    for path in filter(Path.is_file, folder.rglob("*")):
        if path.suffix == ".crt":
            public.update(re.findall(WORD, path.read_bytes()))
        elif path.suffix == ".key" or SECRET_FOLDERS & set(path.parts):
            secrets.update(re.findall(WORD, path.read_bytes()))
    return {hashlib.sha256(word).hexdigest()[:HASH_CHARS] for word in secrets - public}


def leaked(attack: tuple[Json, list[str]]) -> str:
    """Return what the attacker printed as leaked, or why it did not get to its end."""
    row, output = attack
    lines = [line for line in output if line.startswith("leaked") or MARKER in line]
    if lines:
        return "; ".join(lines[:4])
    return "" if row["phase"] == "succeeded" else f"the case ended as {row['phase']}: {output[-2:]}"


CASES = (
    forks_without_end,
    fills_memory,
    fills_disk,
    fills_disk_without_a_name,
    fills_log,
    ignores_sigterm,
    leaves_its_session,
    reads_proc_of_others,
    signals_others,
    reads_leftovers,
    opens_files_of_the_agent,
    connects_to_sockets_of_the_agent,
    reads_credentials_of_the_control_plane,
)
