"""Jobs of one node are kept apart: folders, users and what a node says of them."""

from __future__ import annotations

import os
import stat
from typing import Any

import pytest

from berth_agent.node.config import Config
from berth_agent.node.system.machine import probe_kernel
from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import W, a_node, line, run
from tests.agent.step_bench import until

pytestmark = pytest.mark.process

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives workers a user")
mounting = pytest.mark.skipif(not probe_kernel(Config()).mounts, reason="no mount namespaces here")
OTHER = "0/6/0/0"


def gang(rank: int) -> dict[str, Any]:
    return {"rank": rank, "local_rank": rank, "world_size": 2, "local_world_size": 2}


@mounting
def test_a_job_sees_nothing_that_others_left_and_its_workers_share_folders(
    double: ExecutorDouble,
) -> None:
    with a_node(double, private_tmp=True) as node:
        assert double.wait_for("registration").labels["berth.tmp"] == "job"
        leave = "for f in /tmp /var/tmp /dev/shm; do echo weights > $f/left; done"
        run(double, f"{leave}; ls -d $PWD ${{BERTH_TELEMETRY%/*}}; exec sleep 600", **gang(0))
        line(node, "telemetry")
        read = "cat /tmp/left /var/tmp/left /dev/shm/left"
        run(double, read, "0/5/0/1", **gang(1))
        assert double.wait_for("exited", "0/5/0/1").exit_code == 0
        assert node.output("0/5/0/1") == "weights\n" * 3
        run(double, read, OTHER, job_id="j2")
        assert double.wait_for("exited", OTHER).exit_code == 1
        assert node.output(OTHER).count("No such file or directory") == 3


def test_a_node_without_folders_of_jobs_says_so(double: ExecutorDouble) -> None:
    with a_node(double, private_tmp=False) as node:
        assert double.wait_for("registration").labels["berth.tmp"] == "shared"
        run(double, f"ls -d {node.state}")
        assert double.wait_for("exited", W).exit_code == 0


@as_root
def test_a_job_reads_and_reaches_nothing_of_another_tenant(double: ExecutorDouble) -> None:
    first = Config().uid_first
    with a_node(double, uid_first=first) as node:
        assert double.wait_for("registration").labels["berth.user"] == "tenant"
        run(double, "umask 0; id -u; echo weights > mine; exec sleep 600", tenant_number=1)
        line(node, str(first + 1))
        private, socket = node.state / "work" / "j1.1.0", node.run_folder / "telemetry" / "0-5-0-0"
        until(socket.exists)
        for path, mode in ((private, 0o700), (socket, 0o600)):
            status = path.stat()
            assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (first + 1, mode)
        [worker] = [pid for pid in node.living() if os.stat(f"/proc/{pid}").st_uid == first + 1]
        paths = [node.folder(W) / "output.log.0", private / "mine"]
        tried = [f"cat {path}" for path in paths]
        tried += [f"ls {private.parent}", f"cat /proc/{worker}/environ", f"kill {worker}"]
        tried += [f"echo >> {private}/mine", f"test -r {socket} -o -w {socket}"]
        script = "; ".join(f"({command}) && echo leaked" for command in tried)
        run(double, f"id -u; {script}; exit 0", OTHER, job_id="j2", tenant="red", tenant_number=2)
        assert double.wait_for("exited", OTHER).exit_code == 0
        text = node.output(OTHER)
        assert text.splitlines()[0] == str(first + 2) and "leaked" not in text
        assert text.count("ermission denied") >= len(paths)


@as_root
def test_a_job_runs_as_the_user_that_the_operator_names(double: ExecutorDouble) -> None:
    with a_node(double, start=False) as node:
        node.settings["uid_first"] = Config().uid_first
        named = node.command

        def command(*arguments: str) -> list[str]:
            words = named(*arguments)
            with node.config.open("a") as file:
                file.write('\n[users]\n"vision/ada" = "nobody"\n')
            return words

        node.command = command  # type: ignore[method-assign]
        node.start()
        double.wait(lambda: double.joined is not None)
        run(double, "id -un", user="ada", tenant_number=1)
        assert double.wait_for("exited", W).exit_code == 0
        assert node.output(W) == "nobody\n"


def test_an_agent_that_gives_no_users_says_so(double: ExecutorDouble) -> None:
    with a_node(double, uid_first=0):
        assert double.wait_for("registration").labels["berth.user"] == "agent"


def test_a_program_with_a_filter_of_calls_makes_no_namespace_and_gains_no_rights(
    double: ExecutorDouble,
) -> None:
    with a_node(double, seccomp=True) as node:
        seen = "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status"
        run(double, f"{seen}; exec unshare --user --map-root-user true")
        assert double.wait_for("exited", W).exit_code == 1
        output = node.output(W)
        assert output.split()[:4] == ["NoNewPrivs:", "1", "Seccomp:", "2"]
        assert "Operation not permitted" in output
