"""The lease of an incarnation, as the agent's files have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from berth_agent.core.incarnation import Machine
from berth_agent.messages import Terms
from berth_agent.node.config import Config
from berth_agent.node.incarnation_store import IncarnationStore

TERMS = Terms(
    terms_id="t1", stop_after_s=10.0, heartbeat_s=1.0, request_timeout_s=1.0, reconnect_s=1.0
)
SENT_MS, LATE_MS = 5_000, 9_900


def a_store(folder: Path, boot_id: str = "boot", mark: str = "") -> IncarnationStore:
    for name in ("state", "run"):
        (folder / name).mkdir(exist_ok=True)
    config = Config(state=str(folder / "state"), run=str(folder / "run"))
    return IncarnationStore(config, Machine(boot_id, "pid:[1]", ""), lambda: mark)


def leased(folder: Path) -> IncarnationStore:
    store = a_store(folder)
    store.use_terms(TERMS)
    store.begin_lease(0, TERMS.terms_id)
    store.join()
    return store


def lease_file(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "run" / "lease.json").read_text())
    return document


def test_a_late_answer_extends_the_lease_from_the_time_of_sending(tmp_path: Path) -> None:
    """[R1] The steps read a deadline that says nothing of when the answer came."""
    store = leased(tmp_path)
    heartbeat = store.heartbeat("s", SENT_MS)
    assert heartbeat is not None
    store.acknowledge(heartbeat, LATE_MS)
    written = lease_file(tmp_path)
    assert (written["sent_boot_ms"], written["deadline_boot_ms"]) == (SENT_MS, SENT_MS + 10_000)


def test_an_answer_after_the_deadline_is_not_written(tmp_path: Path) -> None:
    """[R2]"""
    store = leased(tmp_path)
    heartbeat = store.heartbeat("s", SENT_MS)
    before = lease_file(tmp_path)
    assert heartbeat is not None
    store.acknowledge(heartbeat, 10_000)
    assert lease_file(tmp_path) == before and store.lease.is_over(10_000)


def test_an_answer_to_an_older_incarnation_extends_nothing(tmp_path: Path) -> None:
    store = leased(tmp_path)
    heartbeat = store.heartbeat("s", SENT_MS)
    store.begin_next()
    store.begin_lease(SENT_MS, TERMS.terms_id)
    before = lease_file(tmp_path)
    assert heartbeat is not None
    store.acknowledge(heartbeat, LATE_MS)
    assert lease_file(tmp_path) == before


def test_an_incarnation_is_on_disk_before_it_is_used(tmp_path: Path) -> None:
    """Rule 1: an agent that is killed at any time never uses a generation twice."""
    store = leased(tmp_path)
    store.last_generation = 6
    store.begin_next()
    assert store.incarnation.generation == 7
    assert a_store(tmp_path).incarnation.generation == 8


def test_an_agent_that_restarts_goes_on_with_its_lease(tmp_path: Path) -> None:
    store = leased(tmp_path)
    again = a_store(tmp_path)
    assert (again.incarnation, again.lease) == (store.incarnation, store.lease)


def test_without_its_lease_or_after_a_reboot_an_incarnation_does_not_go_on(tmp_path: Path) -> None:
    """Rule 1: who has no lease any more cannot know that it has not lapsed."""
    first = leased(tmp_path).incarnation
    (tmp_path / "run" / "lease.json").unlink()
    second = a_store(tmp_path).incarnation
    assert (second.generation, second.uuid != first.uuid) == (2, True)
    store = a_store(tmp_path, "another boot")
    assert store.incarnation.generation == 3 and not store.lease.begun


def test_a_mark_that_is_heard_of_later_is_that_of_the_next_incarnation(tmp_path: Path) -> None:
    """The ledger knows the present one by its mark, and its processes have it."""
    leased(tmp_path)
    store = a_store(tmp_path, mark="abc")
    assert (store.installation, store.proof) == ("", "pid:[1]")
    store.begin_next()
    assert (store.installation, store.proof) == ("abc", "pid:[1]/abc")
