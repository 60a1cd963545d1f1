"""Cases that a job of the attacker tries on its node; each returns what leaked, or nothing."""

from __future__ import annotations

import time

from benchmarks.parts.command import Json
from benchmarks.parts.isolation.node import OUTPUT_MIB
from benchmarks.parts.isolation.room import LEFT, MARKER, MARKER_IN_PARTS, Room

LEFT_S = 20.0
MIB = 2**20
MEMORY_MIB = 700
"""More than the quarter of a GiB that the job has asked for."""
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


def forks_without_end(room: Room) -> str:
    """The job is refused forks, and ends with all that it forked."""
    job_id = room.submit(room.red, "bomb() { bomb | bomb & }; bomb; sleep 4; exit 0")
    room.ended(job_id)
    return survivors(room, job_id)


def fills_memory(room: Room) -> str:
    row, _ = room.attack(python(f"x = bytearray({MEMORY_MIB} << 20); print(len(x))"))
    reason = room.failure(row)
    return "" if reason == "out_of_memory" else f"it ended as {row['phase']} {reason}".strip()


def fills_log(room: Room) -> str:
    """The output on the node is cut, and its end can be read."""
    # Long lines: what is kept is streamed at `lines_per_s`.
    line = "0123456789abcdef" * 200
    row, _ = room.attack(f"yes {line} | head -n 25000; echo the end")
    if row["phase"] != "succeeded":
        return f"it ended as {row['phase']}"
    if not shown(room, str(row["job_id"]), "the end"):
        return "the last line of its output is not shown"
    folders = [path.parent for path in room.node.state.rglob("output.log.*")]
    largest = max(
        (sum(p.stat().st_size for p in folder.glob("output.log.*")) for folder in folders),
        default=0,
    )
    return "" if largest <= 2 * OUTPUT_MIB * MIB else f"{largest / MIB:.0f} MiB of output were kept"


def shown(room: Room, job_id: str, text: str) -> bool:
    """Return whether the output of a job ends with this line, which may still be on its way."""
    ends_s = time.monotonic() + LEFT_S
    while room.output(job_id)[-1:] != [text]:
        if time.monotonic() > ends_s:
            return False
        time.sleep(0.2)
    return True


def ignores_sigterm(room: Room) -> str:
    job_id = room.submit(room.red, "trap '' TERM INT HUP; while :; do sleep 1; done")
    room.until(job_id, ("running",))
    room.cancel(room.red, job_id)
    row = room.ended(job_id)
    return survivors(room, job_id) or ("" if row["phase"] == "cancelled" else str(row["phase"]))


def leaves_its_session(room: Room) -> str:
    """Processes that have gone out of session, group and parent end with the job."""
    daemon = "setsid sh -c 'setsid sleep 600 & sleep 600' > /dev/null 2>&1 &"
    job_id = room.submit(room.red, f"{daemon} {daemon} sleep 1; exit 0")
    room.ended(job_id)
    return survivors(room, job_id)


def survivors(room: Room, job_id: str) -> str:
    ends_s = time.monotonic() + LEFT_S
    while left := room.processes_of(job_id):
        if time.monotonic() > ends_s:
            return f"{len(left)} processes are left"
        time.sleep(0.2)
    return ""


def reads_proc_of_others(room: Room) -> str:
    """No variables, command line or memory map of another tenant's processes can be read."""
    program = """
for pid in os.listdir("/proc"):
    if pid.isdigit() and int(pid) != os.getpid():
        for name in ("environ", "cmdline"):
            look(f"/proc/{pid}/{name}")
"""
    return leaked(room.attack(python(WALK + program)))


def signals_others(room: Room) -> str:
    """The neighbour's processes take no signal of the attacker."""
    pids = " ".join(str(pid) for pid in room.processes_of(room.neighbour))
    row, _ = room.attack(f"kill -KILL {pids}; exit 0")
    seen = room.ticks()
    return "" if room.ticks_on(seen) else f"the neighbour was ended, by a job that {row['phase']}"


def reads_leftovers(room: Room) -> str:
    """Nothing that another tenant left in folders for all can be read."""
    program = f"""
for root in ("/tmp", "/var/tmp", "/dev/shm"):
    look(os.path.join(root, {LEFT!r}))
for root in ({str(room.node.state)!r}, {str(room.node.run)!r}):
    for folder, _, names in os.walk(root):
        for name in names:
            if not folder.startswith(os.getcwd()):
                look(os.path.join(folder, name))
"""
    return leaked(room.attack(python(WALK + program)))


def opens_files_of_the_agent(room: Room) -> str:
    """Identity, lease and orders of the node can be neither read nor written."""
    program = f"""
import stat
own = os.getcwd()
for root in ({str(room.node.state)!r}, {str(room.node.run)!r}):
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
    return leaked(room.attack(python("import os\n" + program)))


def connects_to_sockets_of_the_agent(room: Room) -> str:
    """Sockets of the agent and of other workers take no connection."""
    sockets = [str(path) for path in room.node.run.rglob("*") if path.is_socket()]
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
    return leaked(room.attack(python(program)))


def reads_credentials_of_the_control_plane(room: Room) -> str:
    """Keys, certificates and passwords of the services can be read neither as files nor in /proc"""
    program = f"""
for folder, _, names in os.walk({str(room.control_plane)!r}):
    for name in names:
        path = os.path.join(folder, name)
        if os.access(path, os.R_OK):
            print("leaked", path)
for pid in os.listdir("/proc"):
    try:
        text = open(f"/proc/{{pid}}/environ", "rb").read()
    except OSError:
        continue
    if {str(room.control_plane)!r}.encode() in text and b"BERTH_JOB_ID" not in text:
        print("leaked environ", pid)
"""
    return leaked(room.attack(python("import os\n" + program)))


def image_that_does_not_exist(room: Room) -> str:
    """It ends with its reason; a registry that does not answer is tried a few times."""
    row = room.ended(room.submit(room.red, "exit 0", image="localhost:9/no/such-image:1"))
    reason = f"{room.failure(row)} {row['detail']}"
    is_named = row["phase"] in ("failed", "rejected") and "image" in reason
    return "" if is_named else f"it ended as {row['phase']}: {reason}"


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
    fills_log,
    ignores_sigterm,
    leaves_its_session,
    reads_proc_of_others,
    signals_others,
    reads_leftovers,
    opens_files_of_the_agent,
    connects_to_sockets_of_the_agent,
    reads_credentials_of_the_control_plane,
    image_that_does_not_exist,
)
