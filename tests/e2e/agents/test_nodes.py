"""Nodes with an agent come, have full disks, and leave for good."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from infra.image import node as node_image
from infra.machine.owned_folders import scratch_folder
from tests.agent.small_disk import a_small_disk, fill
from tests.e2e.agents.jobs import POOL, SHORT, berth, is_alive, submit
from tests.e2e.joined import JoinedNode, a_joined_node, make_token
from tests.e2e.stand import Stand, eventually
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.stack

NODES_PAGE = Path(__file__).parents[3] / "docs" / "operations" / "nodes.md"


def problems(node: JoinedNode) -> list[str]:
    row = node.row()
    return [problem["problem"] for problem in row["problems"]] if row else []


@pytest.mark.parts
def test_a_node_with_a_full_disk_says_so_and_takes_no_job_until_it_has_space(stand: Stand) -> None:
    here = {"disk": "small"}
    with scratch_folder("disk") as folder, a_small_disk(folder, "8m"), ExitStack() as stack:
        node = JoinedNode(stand, POOL, folder, "disk-1")
        stack.callback(node.close)
        node.settings |= {"reserve_mib": 1.0, "labels.disk": "small"}
        node.start()
        eventually(lambda: (row := node.row()) and row["alive"])
        assert stand.ended(submit(stand, "exit 0", node_selector=here))["phase"] == "succeeded"
        filler = folder / "filler"
        fill(filler)
        eventually(lambda: problems(node) == ["disk_full"])
        shown = berth(stand, "nodes", "show", "disk-1")
        assert f"the disk of {node.state} has less than 1.5 MiB" in shown
        assert "it takes no new jobs until there is space again" in shown
        job_id = submit(stand, "exit 0", node_selector=here)
        eventually(lambda: "its nodes take no new jobs until" in berth(stand, "why", job_id))
        filler.unlink()
        row = stand.ended(job_id)
        assert (row["phase"], row["attempt"]) == ("succeeded", 1), "no attempt was refused"
        eventually(lambda: problems(node) == [])


def test_a_revoked_node_is_refused(stand: Stand) -> None:
    with a_joined_node(stand, SHORT, "short-3") as node:
        eventually(lambda: node.status().get("executor"))
        berth(stand, "nodes", "revoke", "short-3", "--reason", "sold")
        eventually(lambda: "revoked" in node.status()["problem"])


def test_a_node_is_taken_out_for_good_as_the_page_says(stand: Stand) -> None:
    section = NODES_PAGE.read_text().partition("## Take a node out for good")[2].partition("##")[0]
    commands = re.findall(r"`(berth(?:-agent)? [^`]*)`", section.partition("`berth uncordon")[0])
    assert len(commands) >= 5
    name = "short-4"
    with a_joined_node(stand, SHORT, name) as node:
        for command in commands:
            program, *words = command.replace("NODE", name).split()
            if program == "berth":
                if words[:2] == ["nodes", "forget"]:
                    eventually(lambda: (row := node.row()) is not None and not row["alive"])
                berth(stand, *words)
            elif words == ["status"]:
                eventually(lambda: node.status()["state"] == "left")
                node.kill(signal.SIGTERM)
            else:
                assert node.call(*words).returncode == 0
        refused = node.call("leave", "--cancel")
        assert refused.returncode != 0 and "join again" in refused.stdout + refused.stderr
        assert node.row() is None
    with a_joined_node(stand, SHORT, name) as later:
        row = later.row()
    assert row is not None and not row["cordoned"]


def test_the_agent_in_a_container_joins_once_and_leaves_when_it_is_stopped(stand: Stand) -> None:
    with scratch_folder("node") as folder:
        config, token = folder / "config.toml", folder / "token"
        text = node_image.CONFIG.read_text()
        text = text.replace("/data/agent", f"{folder}/state")
        text = text.replace("/tmp/berth-agent", str(folder))
        config.write_text(text + "uid_first = 0\n")
        arguments = [stand.stack.gateway, str(stand.stack.ca), config, token]
        code = (
            "import sys; from pathlib import Path; from infra.image.node import main;"
            "sys.exit(main(*sys.argv[1:3], *map(Path, sys.argv[3:])))"
        )
        command = [sys.executable, "-c", code, *map(str, arguments)]
        token.write_text(make_token(stand, POOL) + "\n")
        for _ in range(2):
            process = subprocess.Popen(command)
            eventually(lambda: is_alive(stand, node_image.NODE))
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
            eventually(lambda: not is_alive(stand, node_image.NODE))
            token.unlink(missing_ok=True)
