"""Event times and heartbeats that are years off."""

from __future__ import annotations

import json
import time

import pytest

from shared.contracts.identity import derive_job_id
from shared.contracts.reports import Alive, Heartbeats
from tests.e2e.bad_input.messages import INGRESS, submit_data, submit_job
from tests.e2e.stand import POOL, Stand, a_spec, a_submission, an_event

pytestmark = pytest.mark.stack

YEARS_OFF = ("1970-01-01T00:00:01Z", "9999-12-31T23:59:59Z")


@pytest.mark.parametrize("time_", YEARS_OFF)
def test_an_event_time_that_is_years_off_delays_no_job(stand: Stand, time_: str) -> None:
    before = time.time() * 1000
    skewed, behind = f"skewed-{time_}", f"behind-{time_}"
    data = {"idempotency_key": skewed, "spec": a_spec()}
    stand.publish(INGRESS, 3, an_event(data, time=time_), a_submission(behind))
    for key in (skewed, behind):
        row = stand.ended(derive_job_id("ada", POOL, key))
        assert row["phase"] == "succeeded"
        assert before - 1000 < row["submitted_at"] <= row["ended_at"] < time.time() * 1000 + 1000
    job_id = submit_job().job_id
    value = an_event(submit_data(job_id=job_id), id=f"direct-{time_}", time=time_)
    stand.publish("commands", stand.lane, value)
    assert stand.answer(f"direct-{time_}")["accepted"]
    row = stand.ended(job_id)
    assert before - 1000 < row["submitted_at"] <= row["ended_at"] < time.time() * 1000 + 1000


@pytest.mark.parametrize("time_", YEARS_OFF)
def test_heartbeats_of_another_year_do_not_change_whether_a_node_is_alive(
    stand: Stand, time_: str
) -> None:
    boot_ms = 0 if time_.startswith("1970") else 253_402_300_799_000
    nodes = {
        "a100-0": Alive(incarnation="of-old", sent_boot_ms=boot_ms),
        "no-such-node": Alive(incarnation="1", sent_boot_ms=boot_ms),
    }
    heartbeats = Heartbeats(executor_id="e", nodes=nodes)
    data = json.loads(heartbeats.model_dump_json())
    stand.publish("heartbeats", stand.lane, *[an_event(data, Heartbeats.TYPE, time=time_)] * 20)
    stand.publish("heartbeats", stand.lane, b"\xff", b"", an_event({}, Heartbeats.TYPE))
    assert stand.ended(stand.submit()["job_id"])["phase"] == "succeeded"
    shown = stand.get("/v1/nodes")
    assert shown is not None
    virtual = [row for row in shown["items"] if row["pool"] == POOL]
    assert {row["node_id"] for row in virtual} == {f"a100-{n}" for n in range(4)}
    assert all(row["alive"] for row in virtual)
