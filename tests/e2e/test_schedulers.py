"""Pools under schedulers on a whole stack: Gavel over two types, AFS over elastic jobs, A-SRPT that
chooses nodes, and parts of GPUs packed by fragments. Their decisions are carried out, and the
ledgers verify."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from cli.stack.bring_up import open_up
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import supervise
from infra.supervisor.stack import AGENT, SERVICES
from shared.contracts.pools import ConfigurePool
from tests.e2e.stand import ENDS, Json, Stand, eventually
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.parts, pytest.mark.stack]

SCALE = 600.0
"""Cluster seconds per second: a round of 360 s takes 0.6 s."""
QUICK = {"time_scale": SCALE, "min_residency_s": 0.0, "round_ms": 50}
POOLS = (
    ConfigurePool(pool="typed", scheduler="gavel", **QUICK),
    ConfigurePool(pool="elastic", scheduler="afs", **QUICK),
    ConfigurePool(pool="chosen", scheduler="a_srpt", **QUICK),
    ConfigurePool(pool="parts", packing="fragments", **QUICK),
)
NODES = {
    "typed": (("fast-0", "fast"), ("slow-0", "slow")),
    "elastic": (("e-0", "a100"), ("e-1", "a100")),
    "chosen": (("c-0", "a100"), ("c-1", "a100")),
    "parts": (("p-0", "a100"), ("p-1", "a100")),
}
ABSENT = ("failslow", "throttle", "notifier", AGENT)


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with scratch_folder("schedulers") as folder:
        inventory = folder / "nodes.json"
        inventory.write_text(json.dumps([nodes_of(pool) for pool in NODES]))
        services = tuple(service for service in SERVICES if service.name not in ABSENT)
        options = supervise.StackOptions(
            data_dir=folder / "data",
            partitions=len(POOLS),
            services=services,
            foreground=True,
            awaited=("access",),
            env={"executor-virtual": {"BERTH_NODES": str(inventory)}},
        )
        try:
            stack = supervise.up(options)
            key = open_up(stack, POOLS, ["ada"])
            names = tuple(service.name for service in services)
            supervise.wait_ready(folder / "data", names, PATIENCE_S)
            yield Stand(stack, {"root": key})
        finally:
            supervise.down(folder / "data")


def nodes_of(pool: str) -> Json:
    """Return the inventory of a pool: nodes of four GPUs."""
    rest = {"count": 1, "gpus": 4, "cpus": 64, "mem_gib": 512}
    nodes = [{"id": name, "gpu_type": gpu_type, **rest} for name, gpu_type in NODES[pool]]
    return {"pool": pool, "backend": "virtual", "nodes": nodes}


def submitted(stand: Stand, pool: str, **spec: object) -> str:
    body = {"tenant": "ada", "pool": pool, "spec": {"name": "job", **spec}}

    def taken() -> str | None:
        status, ticket = stand.call("POST", "/v1/jobs", body)
        assert status in (202, 404, 503), ticket  # The pool is known a moment after the key.
        return str(ticket["job_id"]) if status == 202 else None

    return eventually(taken)


def history(stand: Stand, job_id: str) -> list[Json]:
    """Return the decisions about the job once it has succeeded."""
    assert stand.ended(job_id)["phase"] == "succeeded"

    def whole() -> list[Json] | None:
        row = stand.get(f"/v1/jobs/{job_id}/timeline")
        items = row["items"] if row else []
        ended = any(item["type"] == "job.succeeded.v1" for item in items)
        return list(items) if ended else None

    return eventually(whole)


def until_it_proposes(stand: Stand, pool: str, scheduler: str, **spec: object) -> None:
    """Wait until a job is placed by the scheduler, whose process a busy machine may start late."""

    def is_placed_by_it() -> bool:
        job_id = submitted(stand, pool, simulated={"duration_s": 600}, **spec)
        [placed, *_] = of_type(history(stand, job_id), "placed")
        return bool(placed["policy"].endswith(f"+{scheduler}"))

    eventually(is_placed_by_it)


def of_type(events: list[Json], kind: str) -> list[Json]:
    return [dict(event["data"]) for event in events if event["type"] == f"job.{kind}.v1"]


def test_gavel_shares_the_time_of_two_types(stand: Stand) -> None:
    """Three gangs that are four times as fast on one type, and one that is alike on both."""
    rest = {"gang": {"workers": 4}, "checkpoint_interval_s": 30, "grace_s": 0.1}
    until_it_proposes(stand, "typed", "gavel", **rest)
    rest |= {"simulated": {"duration_s": 7200}}
    gain = [
        submitted(stand, "typed", gpu_speeds={"fast": 4.0, "slow": 1.0}, **rest) for _ in range(3)
    ]
    alike = submitted(stand, "typed", gpu_speeds={"fast": 1.0, "slow": 1.0}, **rest)
    events = {job_id: history(stand, job_id) for job_id in (*gain, alike)}
    placed = {job_id: of_type(own, "placed") for job_id, own in events.items()}
    assert all(event["policy"].endswith("+gavel") for own in placed.values() for event in own)
    on_fast = {
        job_id: [event["allocations"][0]["node_id"] == "fast-0" for event in own]
        for job_id, own in placed.items()
    }
    assert all(any(on_fast[job_id]) for job_id in gain), "each has its share of the fast type"
    stops = [event for own in events.values() for event in of_type(own, "preempted")]
    assert stops, "they take turns"
    assert {stop["reason"] for stop in stops} == {"outranked"}
    assert all(stop["terms"]["scheduled"] == 1.0 for stop in stops)


def test_afs_resizes_elastic_jobs(stand: Stand) -> None:
    elastic = {"min_workers": 1, "max_workers": 8}
    rest: Json = {"gang": {"workers": 4}, "elastic": elastic}
    rest |= {"checkpoint_interval_s": 30, "grace_s": 0.1}
    until_it_proposes(stand, "elastic", "afs", **rest)
    long = submitted(stand, "elastic", walltime_s=36000, simulated={"duration_s": 14400}, **rest)
    stand.until(long, "running")
    short = submitted(stand, "elastic", walltime_s=3600, simulated={"duration_s": 1200}, **rest)
    resized = of_type(history(stand, long), "resized")
    first = of_type(history(stand, long), "placed")[0]
    assert len(first["allocations"]) == 8, "alone it has all GPUs"
    assert {event["reason"] for event in resized} == {"shrink", "grow"}
    assert of_type(history(stand, short), "placed")[0]["policy"].endswith("+afs")


def test_a_srpt_chooses_nodes(stand: Stand) -> None:
    """Gangs of two sizes, which it starts where they fit on as few nodes as can be."""
    jobs = [
        submitted(
            stand,
            "chosen",
            gang={"workers": 2 + number % 3},
            walltime_s=3600,
            simulated={"duration_s": 600 + 60 * number},
        )
        for number in range(6)
    ]
    placed = [of_type(history(stand, job_id), "placed") for job_id in jobs]
    assert all(event["policy"].endswith("+a_srpt") for own in placed for event in own)
    assert all("chosen_nodes" in event["terms"] for own in placed for event in own)
    assert any(event["terms"]["chosen_nodes"] == 1.0 for own in placed for event in own)


def test_parts_of_gpus_are_packed_by_fragments(stand: Stand) -> None:
    parts = (0.7, 0.3, 0.5, 0.25)
    jobs = [
        submitted(
            stand,
            "parts",
            gang={"gpus_per_worker": parts[n % len(parts)]},
            simulated={"duration_s": 600 + 60 * n},
        )
        for n in range(24)
    ]
    placed = [of_type(history(stand, job_id), "placed")[0] for job_id in jobs]
    assert {event["policy"].rpartition("+")[2] for event in placed} == {"fragments"}
    assert [event["allocations"][0]["gpu_milli"] for event in placed] == [
        round(1000 * parts[n % len(parts)]) for n in range(len(jobs))
    ]


def test_the_ledgers_verify(stand: Stand) -> None:
    page = stand.get("/v1/jobs?limit=1000")
    assert page is not None
    assert {row["phase"] for row in page["items"]} <= set(ENDS)
    assert stand.verify().violations == []
