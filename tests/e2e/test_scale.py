"""Two pools and two copies of each service on one Kafka: lanes are shared out, and taken over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from cli.stack.bring_up import open_up
from cli.stack.verification import verified
from infra.broker import kafka
from infra.broker.topics import connect
from infra.compose.opening import send_request
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import control, stack, supervise
from infra.supervisor.running import RunningStack
from shared.contracts.pools import ConfigurePool
from tests.e2e.stand import ENDS, eventually

pytestmark = [
    pytest.mark.parts,
    pytest.mark.stack,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]
POOLS = ("red", "blue")
LANES = 2
DECIDERS = ("admission", "priority", "placement", "failslow")
WITHIN_S = 240.0


@dataclass(frozen=True, slots=True)
class Installation:
    running: RunningStack
    key: str
    admin: KafkaAdminClient

    def holders(self, service: str) -> dict[int, str]:
        """Return the member of the service's group that holds each lane of its inputs.

        Lanes that change hands are missing: the broker gives a member without an assignment an
        empty text.
        """
        group = self.admin.describe_groups([f"berth-{service}"])[f"berth-{service}"]
        return {
            lane: str(member["group_instance_id"])
            for member in group["members"]
            if member["member_assignment"]
            for part in member["member_assignment"]["assigned_partitions"]
            for lane in part["partitions"]
        }

    def all_holders(self, service: str) -> dict[int, str]:
        """Return the holders once every lane has one."""
        return eventually(
            lambda: holders if len(holders := self.holders(service)) == LANES else None, WITHIN_S
        )

    def submit(self, pool: str, name: str) -> str:
        body = {
            "tenant": "ada",
            "pool": pool,
            "idempotency_key": f"{pool}-{name}",
            "spec": {"name": name, "gang": {"workers": 1}, "simulated": {"duration_s": 0.2}},
        }

        def taken() -> str | None:
            status, ticket = send_request(self.running, self.key, "POST", "/v1/jobs", body)
            assert status in (0, 202, 503), ticket
            return str(ticket["job_id"]) if status == 202 else None

        return eventually(taken, WITHIN_S)

    def succeeded(self, job_id: str) -> bool:
        status, row = send_request(self.running, self.key, "GET", f"/v1/jobs/{job_id}")
        if status != 200 or row["phase"] not in ENDS:
            return False
        assert row["phase"] == "succeeded", row
        return True


@contextmanager
def two_of_each(folder: Path) -> Iterator[RunningStack]:
    nodes = [
        {
            "pool": pool,
            "backend": "virtual",
            "nodes": [
                {
                    "id": f"{pool}-{{0..1}}",
                    "count": 2,
                    "gpu_type": "a100",
                    "gpus": 4,
                    "cpus": 32,
                    "mem_gib": 256,
                }
            ],
        }
        for pool in POOLS
    ]
    inventory = folder / "nodes.json"
    inventory.write_text(json.dumps(nodes))
    options = supervise.StackOptions(
        data_dir=folder / "data",
        broker="kafka",
        partitions=LANES,
        awaited=("access",),
        services=stack.copies(2),
        env={"executor-virtual": {"BERTH_NODES": str(inventory)}},
    )
    try:
        yield supervise.up(options)
    finally:
        supervise.down(folder / "data")


@pytest.fixture(scope="module")
def site() -> Iterator[Installation]:
    with scratch_folder("scale") as folder, two_of_each(folder) as running:
        key = open_up(running, [ConfigurePool(pool=pool) for pool in POOLS], ["ada"])
        names = tuple(running.ports)
        supervise.wait_ready(running.data_dir, names, WITHIN_S)
        admin = connect(running.connection("admin"))
        try:
            yield Installation(running, key, admin)
        finally:
            admin.close()


@pytest.mark.parametrize("service", DECIDERS)
def test_two_copies_share_the_lanes(site: Installation, service: str) -> None:
    assert set(site.all_holders(service).values()) == {f"{service}-0", f"{service}-2-0"}


def test_jobs_of_both_pools_run_and_one_of_the_two_projectors_writes(site: Installation) -> None:
    jobs = [site.submit(pool, f"calm-{n}") for pool in POOLS for n in range(5)]
    for job_id in jobs:
        eventually(lambda job=job_id: site.succeeded(job), WITHIN_S)  # type: ignore[misc]


def test_the_lanes_of_a_stopped_copy_are_taken_over_and_its_jobs_go_on(site: Installation) -> None:
    """The supervisor does not start a stopped copy again."""
    for service in DECIDERS:
        control.stop(site.running.data_dir, service)
    jobs = [site.submit(pool, f"after-{n}") for pool in POOLS for n in range(5)]
    for job_id in jobs:
        eventually(lambda job=job_id: site.succeeded(job), WITHIN_S)  # type: ignore[misc]
    for service in DECIDERS:
        only = {f"{service}-2-0"}
        eventually(lambda name=service, one=only: set(site.holders(name).values()) == one, WITHIN_S)  # type: ignore[misc]


def test_a_copy_that_comes_back_gets_a_lane_again(site: Installation) -> None:
    for service in DECIDERS:
        control.start(site.running.data_dir, service)
    for service in DECIDERS:
        eventually(lambda name=service: len(set(site.all_holders(name).values())) == 2, WITHIN_S)  # type: ignore[misc]


def test_nothing_was_lost_or_done_twice(site: Installation) -> None:
    result = verified(site.running)
    assert not result.violations
