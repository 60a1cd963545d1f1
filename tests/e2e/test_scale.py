"""Two pools and two copies of each service on one Kafka: lanes are shared out, and taken over."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from cli.bring_up import open_up
from cli.verifying import verified
from infra.broker import kafka
from infra.broker.topics import connect
from infra.compose.containers import ask
from infra.supervisor import control, stack, supervise
from infra.supervisor.running import RunningStack
from shared.contracts.access import ConfigurePool
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
        """Who of the service's group holds each lane of its inputs; none while lanes change hands.

        The broker gives a member without an assignment an empty text in its place.
        """
        told = self.admin.describe_groups([f"berth-{service}"])[f"berth-{service}"]
        return {
            lane: str(member["group_instance_id"])
            for member in told["members"]
            if member["member_assignment"]
            for part in member["member_assignment"]["assigned_partitions"]
            for lane in part["partitions"]
        }

    def stands(self, service: str) -> dict[int, str]:
        """The same once no lane is without a holder."""
        return eventually(
            lambda: found if len(found := self.holders(service)) == LANES else None, WITHIN_S
        )

    def submit(self, pool: str, name: str) -> str:
        body = {
            "tenant": "ada",
            "pool": pool,
            "idempotency_key": f"{pool}-{name}",
            "spec": {"name": name, "gang": {"workers": 1}, "simulated": {"duration_s": 0.2}},
        }
        status, told = ask(self.running, self.key, "POST", "/v1/jobs", body)
        assert status == 202, told
        return str(told["job_id"])

    def succeeded(self, job_id: str) -> bool:
        status, row = ask(self.running, self.key, "GET", f"/v1/jobs/{job_id}")
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
    kept = [each for each in stack.SERVICES if each.name != "executor-local"]
    options = supervise.StackOptions(
        data_dir=folder / "data",
        broker="kafka",
        partitions=LANES,
        awaited=("access",),
        services=stack.copies(2, kept),
        env={"executor-virtual": {"BERTH_NODES": str(inventory)}},
    )
    try:
        yield supervise.up(options)
    finally:
        supervise.down(folder / "data")


@pytest.fixture(scope="module")
def site() -> Iterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="berth-scale-", ignore_cleanup_errors=True) as root:
        Path(root).chmod(0o755)
        with two_of_each(Path(root)) as running:
            key = open_up(running, [ConfigurePool(pool=pool) for pool in POOLS], ["ada"])
            names = tuple(each for each in running.ports)
            supervise.wait_ready(running.data_dir, names, WITHIN_S)
            admin = connect(running.connection("admin"))
            try:
                yield Installation(running, key, admin)
            finally:
                admin.close()


@pytest.mark.parametrize("service", DECIDERS)
def test_two_copies_share_the_lanes(site: Installation, service: str) -> None:
    assert set(site.stands(service).values()) == {f"{service}-0", f"{service}-2-0"}


def test_jobs_of_both_pools_run_and_one_of_the_two_projectors_writes(site: Installation) -> None:
    jobs = [site.submit(pool, f"calm-{n}") for pool in POOLS for n in range(5)]
    for job_id in jobs:
        eventually(lambda job=job_id: site.succeeded(job), WITHIN_S)  # type: ignore[misc]


def test_who_is_gone_hands_its_lane_over_and_its_jobs_go_on(site: Installation) -> None:
    """Its machine is gone: nothing starts it again."""
    for service in DECIDERS:
        control.stop(site.running.data_dir, service)
    jobs = [site.submit(pool, f"after-{n}") for pool in POOLS for n in range(5)]
    for job_id in jobs:
        eventually(lambda job=job_id: site.succeeded(job), WITHIN_S)  # type: ignore[misc]
    for service in DECIDERS:
        only = {f"{service}-2-0"}
        eventually(lambda name=service, one=only: set(site.holders(name).values()) == one, WITHIN_S)  # type: ignore[misc]


def test_who_comes_back_gets_a_lane_again(site: Installation) -> None:
    for service in DECIDERS:
        control.start(site.running.data_dir, service)
    for service in DECIDERS:
        eventually(lambda name=service: len(set(site.stands(name).values())) == 2, WITHIN_S)  # type: ignore[misc]


def test_nothing_was_lost_or_done_twice(site: Installation) -> None:
    found = verified(site.running)
    assert not found.violations
