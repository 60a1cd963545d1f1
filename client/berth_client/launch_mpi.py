"""Starts a program across the gang by the `mpirun` of rank 0, without SSH.

    PROCESSES COMMAND...

`mpirun` starts its daemons on other nodes by a program such as `ssh`. Here it is one that hands the
command to rank 0's launcher, by a socket in a folder of its own, which has the rank run it. Ranks
are the hosts `rank-1`, `rank-2`, ..., as several workers may be on one node.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection, Listener

from berth_client.launch_gang import Gang, hold, read_key, receive, send
from berth_client.launch_program import exit_status, new_folder, stop, terminate

POLL_S = 0.2
LOST = 255
"""Exit status of `ssh` for a host that it cannot reach."""
AGENT = """#!{python}
import json, os, sys
from multiprocessing.connection import Client
connection = Client(os.path.join(os.path.dirname(__file__), "socket"))
connection.send_bytes(json.dumps({{"host": sys.argv[1], "words": sys.argv[2:]}}).encode())
sys.exit(json.loads(connection.recv_bytes())["exit"])
"""
OPEN_MPI = {
    # A rank starts no daemons on others.
    "plm_rsh_no_tree_spawn": "1",
    "orte_leave_session_attached": "1",
    # Control groups bound the worker, and cores of the node are not all its own.
    "hwloc_base_binding_policy": "none",
    # It goes by process ids, which mean others in a worker with a pid namespace of its own.
    "btl_vader_single_copy_mechanism": "none",
}


def main() -> None:
    processes, *command = sys.argv[1:]
    read_key()
    if os.environ["RANK"] != "0":
        sys.exit(hold())
    if shutil.which("mpirun") is None:
        sys.exit("mpirun is not in the PATH: MPI is not installed on this node or in its image")
    gang, folder = Gang(), new_folder("mpi")
    os.mkdir(folder, 0o700)
    listener = Listener(os.path.join(folder, "socket"), backlog=gang.size)
    threading.Thread(target=_accept, args=(listener, gang), daemon=True).start()
    try:
        for name, value in variables(_write_agent(folder)).items():
            os.environ.setdefault(name, value)
        hosts = os.path.join(folder, "hosts")
        with open(hosts, "w") as file:
            file.write(host_lines(gang.size, int(processes)))
        total = str(gang.size * int(processes))
        sys.exit(_run(["mpirun", "-hostfile", hosts, "-n", total, *command], gang))
    finally:
        gang.end()
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)


def host_lines(size: int, processes: int) -> str:
    """Return the file of hosts: a line for each process, which every MPI reads alike."""
    names = ["localhost", *(f"rank-{rank}" for rank in range(1, size))]
    return "".join(f"{name}\n" * processes for name in names)


def variables(agent: str) -> dict[str, str]:
    """Return the variables of `mpirun`, which a job may set otherwise."""
    open_mpi = {"plm_rsh_agent": agent, **OPEN_MPI}
    options = {f"OMPI_MCA_{name}": value for name, value in open_mpi.items()}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    hydra = {"HYDRA_LAUNCHER": "rsh", "HYDRA_LAUNCHER_EXEC": agent}
    return {**options, **root, **hydra}


def _write_agent(folder: str) -> str:
    """Return the path of the program that is to `mpirun` what `ssh` is elsewhere."""
    agent = os.path.join(folder, "agent")
    with open(agent, "w") as file:
        file.write(AGENT.format(python=sys.executable))
    os.chmod(agent, 0o700)
    return agent


def _accept(listener: Listener, gang: Gang) -> None:
    while True:
        try:
            peer = listener.accept()
        except OSError:
            return
        threading.Thread(target=_start, args=(peer, gang), daemon=True).start()


def _start(peer: Connection, gang: Gang) -> None:
    """Have a rank run a command as `ssh` does, through a shell; answer with its exit status."""
    message = receive(peer)
    member = gang.members[int(message["host"].removeprefix("rank-"))]
    # Workers of one node have one /dev/shm, and Open MPI the same names in it for each.
    folder = new_folder("mpi", "/dev/shm")
    names = ("btl_vader_backing_directory", "orte_tmpdir_base")
    env = {f"OMPI_MCA_{name}": folder for name in names}
    member.run(["sh", "-c", " ".join(message["words"])], folder, env)
    member.has_ended.wait()
    send(peer, {"exit": LOST if member.exit_code is None else member.exit_code})


def _run(command: list[str], gang: Gang) -> int:
    """Run `mpirun` until it ends, or until a rank is lost; return its exit status."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    signal.signal(signal.SIGTERM, lambda *_: terminate(process))
    while (code := process.poll()) is None:
        if failure := gang.failure(by_exit=False):
            print(f"the gang is not whole: {failure}", flush=True)
            stop(process)
            return 1
        time.sleep(POLL_S)
    return exit_status(code)
