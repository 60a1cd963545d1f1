"""The state of a node in words."""

from __future__ import annotations

import pytest

from cli.api.http import Json
from cli.text.nodes import (
    GONE_MS,
    health_lines,
    is_gone,
    labelled_fields,
    loss_lines,
    loss_text,
    node_text,
    problem_lines,
    release_text,
    state_of,
)
from cli.text.reasons import words
from tests.cli.node_rows import LOST, NODE, SILENT

FULL = {"problem": "disk_full", "detail": "the disk of /var/lib/berth-agent", "since_at": 1}
COPY = {"problem": "cloned_identity", "detail": "a has it, b is refused", "since_at": 1}


@pytest.mark.parametrize(
    ("node", "state"),
    [
        (NODE, "ready"),
        ({**NODE, "identity": None}, "ready"),
        ({**NODE, "cordoned": True, "health": 0.5}, "cordoned, health 0.50"),
        ({**NODE, "injection": {"fault": "slow"}}, "ready, slow injected"),
        ({**NODE, "problems": [FULL, COPY]}, "disk full, identity cloned"),
        ({**NODE, "cordoned": True, "problems": [FULL]}, "cordoned"),
        ({**NODE, "problems": [{"problem": "engine_drained"}]}, "drained by the engine"),
        ({**NODE, "problems": [{"problem": "foreign_work"}]}, "occupied by others"),
        ({**NODE, "identity": "revoked"}, "revoked"),
        ({**SILENT, "identity": "revoked"}, "revoked, suspected"),
        ({**NODE, "draining": True, "used_milli": [0, 500]}, "draining"),
        ({**NODE, "draining": True, "cordoned": True}, "drained"),
        (SILENT, "suspected"),
        (LOST, "lost (silent)"),
        ({**LOST, "reason": "left; prolog_failed: exit code 3"}, "lost (left)"),
        ({**LOST, "state": "declared", "reason": "declared"}, "declared lost"),
        ({**NODE, "reason": "machine_changed: x"}, "held back (another machine waits)"),
        ({**LOST, "reason": "machine_changed: x"}, "lost (another machine waits)"),
    ],
)
def test_a_node_that_takes_no_job_is_not_ready(node: Json, state: str) -> None:
    assert state_of(node) == state


def test_a_node_that_protects_less_says_what_that_means() -> None:
    assert node_text("limits", "v2") == "v2"
    assert node_text("limits", "none").startswith("none: CPU, memory and number of processes of")
    assert node_text("fencing", "advice").startswith("advice: the agent, not the kernel, ends")
    assert node_text("tmp", "shared").startswith("shared: its workers see /tmp and /dev/shm of the")
    assert node_text("user", "agent").startswith("agent: workers of all tenants run as the user of")
    assert node_text("lost_after_ms", 774_000) == "12 min 54 s"


def test_giving_up_a_node_says_what_follows() -> None:
    """A node that lives comes back by itself."""
    living = loss_text(NODE, powered_off=False)
    assert living.startswith("its jobs stop. It is alive: its agent ends all of its workers, joins")
    assert "`berth drain vm`, `berth-agent leave` there, `berth nodes revoke vm`" in living
    silent = loss_text(SILENT, powered_off=False)
    assert (
        "silent for 1 min 0 s: if its agent lives," in silent
        and "after 1 min 30 s without" in silent
    )
    assert "held until it has rebooted; `berth nodes lost vm --powered-off` frees" in loss_text(
        {**SILENT, "lost_after_ms": None}, powered_off=False
    )
    assert loss_text(SILENT, powered_off=True) == "its jobs stop, its GPUs are free"
    declared = {**LOST, "state": "declared", "reason": "declared"}
    assert loss_lines(declared) == [release_text(declared)]
    assert loss_lines(LOST) == loss_lines(NODE) == []


def test_the_event_of_a_loss_says_what_follows() -> None:
    assert words("node.lost.v1", {"reason": "silent", "silent_s": 9.0}) == "silent"
    declared = {"reason": "declared", "detail": "no power"}
    assert words("node.lost.v1", {**declared, "powered_off": True}) == (
        "declared, powered off; no power"
    )
    alive = words("node.lost.v1", {**declared, "heard": True})
    assert alive.startswith("declared, alive: its agent ends all of its workers, joins anew")
    assert alive.endswith("; no power")


def test_what_an_agent_names_by_labels_are_fields_of_its_node() -> None:
    labels = {"berth.tmp": "job", "berth.user": "tenant", "berth.images": "no", "rack": "r1"}
    labels["berth.disk"] = "50 GiB"
    fields = {"tmp": "job", "user": "tenant", "images": "no", "disk": "50 GiB"}
    assert labelled_fields({"labels": labels}) == fields
    assert labelled_fields({"node_id": "n1"}) == {}


def test_a_lost_node_of_an_old_recording_is_gone_a_week_later_in_the_recording() -> None:
    lost_at = 1_700_000_000_000
    node = {**LOST, "lost_at": lost_at}
    assert not is_gone({**node, "as_of": lost_at + GONE_MS})
    assert is_gone({**node, "as_of": lost_at + GONE_MS + 1})
    assert is_gone(node)


def test_a_problem_says_since_when_and_what_to_do() -> None:
    full, copy = problem_lines({**NODE, "problems": [FULL, COPY]})
    assert (
        full.startswith("disk_full, since 1970") and "the disk of /var/lib/berth-agent; it" in full
    )
    assert "takes no new jobs until there is space again" in full
    assert "a has it, b is refused" in copy and "`berth nodes token --pool gpu`" in copy
    assert problem_lines(NODE) == [], "a gateway of an earlier release names none"


def test_health_is_shown_by_part_with_its_reasons() -> None:
    live = {"fault_id": "j1/1/0/1", "gpu": 3, "slowdown": 2.0, "since_at": 1, "until": None}
    past = {**live, "fault_id": "history/vm/3", "slowdown": 1.1, "until": 86_400_000}
    whole = {**past, "fault_id": "history/vm", "gpu": None, "slowdown": 1.25}
    (node, why), (gpu, reasons) = health_lines({**NODE, "suspicions": [live, past, whole]})
    assert (node, gpu) == ("node health", "GPU 3 health")
    assert why.startswith("0.80: its faults since 19") and "counts until 19" in why
    assert reasons.startswith("0.50: 2.00 times as slow in j1/1/0/1 since 19")
    assert "(berth why-slow j1); its faults since" in reasons
    [(_, hidden)] = health_lines({**NODE, "suspicions": [{**live, "fault_id": ""}]})
    assert hidden.startswith("0.50: 2.00 times as slow since 19")
    assert health_lines(NODE) == [], "a gateway of an earlier release names none"


def test_a_node_of_an_engine_says_what_keeps_new_work_off() -> None:
    drained = {"problem": "engine_drained", "detail": "Slurm: DRAIN, fan", "since_at": 1}
    [line] = problem_lines({**NODE, "node_id": "g1", "problems": [drained]})
    assert "Slurm: DRAIN, fan" in line and "nodename=g1 state=resume" in line
