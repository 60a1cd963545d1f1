"""Reading over HTTP: rows of the read models, and never another tenant's."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

import asyncpg
import pytest

from shared.contracts.access import TenantRegistered
from shared.contracts.admission import JobAdmitted, QuotaChanged
from shared.contracts.attempts import JobPreempted, JobStarted, JobSucceeded
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.faults import FaultSuspected
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.nodes import NodeHealthNoted
from shared.contracts.placement import Allocation, JobEnqueued, JobHeld, JobPlaced, JobStopDeferred
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import JobStartEstimated, QueueRanked, Ranked
from shared.contracts.rejected import (
    InputQuarantined,
    InputRejected,
    InputRetried,
    InputRetryRequested,
    InputSkipped,
)
from shared.contracts.settings_version import version_of
from shared.projections.retention import Mark, store_mark
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import Stack
from tests.shared.ledger_events import node_joined

FLOOD = 500
SPEC = JobSpec(name="train", command=("run", "canary-argv"), env={"A": "canary-env"})


@pytest.fixture(scope="module")
def rows(stack: Stack) -> Stack:
    asyncio.run(fill(stack))
    return stack


async def fill(stack: Stack) -> None:
    await stack.clear_rows()
    await stack.project(
        "access",
        0,
        1,
        PoolConfigured(pool="main", partition=1),
        TenantRegistered(tenant="ada", default_pool="main"),
        TenantRegistered(tenant="bob", default_pool="main"),
    )
    await stack.project("placement", 1, 1, node_joined(gpus=2))
    for seq, (job, tenant) in enumerate([("a1", "ada"), ("a2", "ada"), ("b1", "bob")], 10):
        await admit(stack, seq, job, tenant)
    await stack.project(
        "placement",
        1,
        40,
        JobPlaced(
            job_id="a1",
            tenant="ada",
            attempt=1,
            waited_ms=5,
            policy="fcfs",
            allocations=(Allocation(rank=0, node_id="n1", gpus=(1,)),),
        ),
        JobPreempted(job_id="a1", tenant="ada", attempt=1, reason="higher_class", by_job_id="b1"),
    )
    await stack.project(
        "priority",
        1,
        41,
        QueueRanked(
            base_policy="fcfs",
            learned="venus",
            runtime="history",
            waiting=3,
            ranked=(Ranked(job_id="b1", score=2.0), Ranked(job_id="a2", score=0.5)),
        ),
        JobStartEstimated(
            job_id="a2",
            tenant="ada",
            pool="virtual",
            p10_at=50,
            p50_at=60,
            p90_at=90,
            coverage=0.79,
            samples=40,
        ),
    )
    await stack.project(
        "placement",
        1,
        42,
        NodeHealthNoted(node_id="n1", fault_id="a0/1/0/1", slowdown=2, health=0.5, gpu=5),
    )
    await stack.project(
        "failslow",
        1,
        43,
        FaultSuspected(
            fault_id="a0/1/0/1",
            job_id="a0",
            tenant="ada",
            node_id="n1",
            allocation_id="1/40/0/0",
            slowdown=2,
            iteration_s=2,
            peers_s=1,
            score=9,
            reports=3,
        ),
    )
    await stack.project(
        "admission",
        1,
        50,
        CommandAccepted(
            command_id="c-ada",
            command_type="job.submit.v1",
            tenant="ada",
            of="a1",
            principal="key:ada-key",
        ),
        QuotaChanged(tenant="ada", guaranteed_gpus=8),
        InputRejected(
            topic="submissions.bob",
            partition=0,
            offset=3,
            reason="not JSON",
            sha256="0" * 64,
            tenant="bob",
        ),
    )


async def admit(stack: Stack, seq: int, job: str, tenant: str, spec: JobSpec = SPEC) -> None:
    await stack.project(
        "admission", 1, seq, JobAdmitted(job_id=job, tenant=tenant, submitted_at=seq, spec=spec)
    )
    await stack.project(
        "placement",
        1,
        seq,
        JobEnqueued(job_id=job, tenant=tenant, submitted_at=seq, spec=spec),
        JobHeld(job_id=job, tenant=tenant, reason="no_capacity", short_gpus=2),
    )


async def test_a_job_is_shown_without_its_command_and_environment(rows: Stack) -> None:
    status, content, _ = await rows.call("GET", "/v1/jobs/a2")
    assert (status, content["phase"], content["reason"]) == (200, "waiting", "no_capacity")
    assert content["spec"]["name"] == "train" and content["pool"] == "main"
    assert "canary" not in str(content)


async def test_pages_of_jobs_follow_each_other_without_gap_or_repeat(rows: Stack) -> None:
    job_ids: list[str] = []
    after = ""
    for _ in range(3):
        _, content, _ = await rows.call("GET", f"/v1/jobs?limit=1&name=train{after}", key="op")
        job_ids += [row["job_id"] for row in content["items"]]
        after = f"&after={content['next']}"
    assert job_ids == ["b1", "a2", "a1"]


async def test_jobs_are_filtered(rows: Stack) -> None:
    for query, jobs in {
        "phase=waiting": ["a2"],
        "name=tr": ["a2", "a1"],
        "name=zz": [],
        "pool=main": ["a2", "a1"],
    }.items():
        _, content, _ = await rows.call("GET", f"/v1/jobs?{query}")
        assert [row["job_id"] for row in content["items"]] == jobs


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs/b1",
        "/v1/jobs/b1/timeline",
        "/v1/jobs/b1/why",
        "/v1/jobs/b1/trace",
        "/v1/jobs/b1/logs",
        "/v1/jobs?tenant=bob",
        "/v1/tenants/bob",
        "/v1/jobs/none",
    ],
)
async def test_what_is_another_tenants_is_not_there(rows: Stack, path: str) -> None:
    assert (await rows.call("GET", path))[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs",
        "/v1/queue",
        "/v1/allocations?released=true",
        "/v1/tenants",
        "/v1/dead",
        "/v1/nodes",
        "/v1/jobs/a1/timeline",
        "/v1/jobs/a1/why",
        "/v1/llm/requests",
    ],
)
async def test_no_list_names_another_tenant_or_its_jobs(rows: Stack, path: str) -> None:
    status, content, _ = await rows.call("GET", path)
    assert status == 200
    assert "bob" not in str(content) and "b1" not in str(content)


async def test_the_timeline_and_the_reasons_of_waiting_are_in_order(rows: Stack) -> None:
    _, job, _ = await rows.call("GET", "/v1/jobs/a1")
    assert job["submitted_by"] == "key:ada-key"
    assert (await rows.call("GET", "/v1/jobs/a2"))[1]["submitted_by"] is None, "not projected"
    _, content, _ = await rows.call("GET", "/v1/jobs/a1/timeline")
    assert [item["type"] for item in content["items"]] == [
        "job.admitted.v1",
        "job.enqueued.v1",
        "job.held.v1",
        "job.placed.v1",
        "job.preempted.v1",
    ]
    _, why, _ = await rows.call("GET", "/v1/jobs/a2/why")
    held = next(item for item in why["items"] if item["type"] == "job.held.v1")
    assert held["data"]["short_gpus"] == 2


async def test_a_history_that_has_left_is_named_with_its_folder(rows: Stack) -> None:
    spec = JobSpec(name="ancient")
    march_2026 = 1_774_000_000_000
    await rows.project(
        "admission", 1, 60, JobAdmitted(job_id="old", tenant="ada", submitted_at=60, spec=spec)
    )
    await rows.project(
        "placement",
        1,
        60,
        JobEnqueued(job_id="old", tenant="ada", submitted_at=60, spec=spec),
        JobSucceeded(job_id="old", tenant="ada", attempt=1),
        at=march_2026,
    )
    assert (await rows.call("GET", "/v1/jobs/old/why"))[1]["archived"] is None
    conn = await asyncpg.connect(rows.dsn, server_settings={"search_path": "berth"})
    try:
        await conn.execute("DELETE FROM job_event WHERE job_id = 'old'")
        assert (await rows.call("GET", "/v1/jobs/old/why"))[1]["archived"] is None
        await store_mark(conn, Mark(leaving_at=march_2026 + 1))
        for path in ("why", "timeline"):
            _, content, _ = await rows.call("GET", f"/v1/jobs/old/{path}")
            assert content["items"] == []
            assert content["archived"] == "read-models/job_event/2026-03/"
    finally:
        await conn.execute("DELETE FROM retention")
        await conn.execute("DELETE FROM job_admission WHERE job_id = 'old'")
        await conn.execute("DELETE FROM job_placement WHERE job_id = 'old'")
        await conn.close()


async def test_a_running_job_says_until_when_its_stop_was_put_off(rows: Stack) -> None:
    spec = JobSpec(name="busy")
    await rows.project(
        "admission", 1, 61, JobAdmitted(job_id="busy", tenant="ada", submitted_at=61, spec=spec)
    )
    allocations = (Allocation(rank=0, node_id="n1", gpus=(5,)),)
    placed = {"attempt": 1, "allocations": allocations, "waited_ms": 0, "policy": "fcfs"}
    about = {"job_id": "busy", "tenant": "ada"}
    deferral = {"until": 900, "rule": "checkpoint", "victims": 2}
    await rows.project(
        "placement",
        1,
        61,
        JobEnqueued(**about, submitted_at=61, spec=spec),
        JobPlaced.model_validate(about | placed),
        JobStarted(**about, attempt=1),
        JobStopDeferred.model_validate(about | deferral | {"attempt": 1, "by_job_id": "b1"}),
    )
    try:
        _, own, _ = await rows.call("GET", "/v1/jobs/busy/why")
        assert own["deferral"] == {"at": own["deferral"]["at"], **deferral}
        _, shown, _ = await rows.call("GET", "/v1/jobs/busy/why", key="op")
        assert shown["deferral"]["by_job_id"] == "b1"
        assert (await rows.call("GET", "/v1/jobs/a2/why"))[1]["deferral"] is None
    finally:
        conn = await asyncpg.connect(rows.dsn, server_settings={"search_path": "berth"})
        for table in ("job_admission", "job_placement", "job_event", "allocation"):
            await conn.execute(f"DELETE FROM {table} WHERE job_id = 'busy'")  # noqa: S608
        await conn.close()


async def test_lists_and_404s_say_which_rows_have_left(rows: Stack) -> None:
    """By the last page of a list, and by the 404 of a job, an answer or an input."""
    _, page, _ = await rows.call("GET", "/v1/jobs")
    assert "left_before" not in page
    assert (await rows.call("GET", "/v1/jobs/gone"))[1]["detail"] == "job not found"
    march_2026 = 1_772_323_200_000
    conn = await asyncpg.connect(rows.dsn, server_settings={"search_path": "berth"})
    tables = ("job_admission", "allocation", "command", "dead_letter", "audit")
    try:
        for table in tables:
            await store_mark(conn, Mark(march_2026, march_2026, 1, 7), table)
        for path in ("jobs", "submissions", "allocations?released=true", "dead", "audit"):
            _, page, _ = await rows.call("GET", f"/v1/{path}", key="op")
            assert page["left_before"] == march_2026, path
        assert "left_before" not in (await rows.call("GET", "/v1/jobs?limit=1"))[1]
        for path, table in (
            ("jobs/gone", "job_admission"),
            ("jobs/gone/why", "job_admission"),
            ("commands/gone", "command"),
            ("dead/gone/0/1/0", "dead_letter"),
        ):
            status, problem, _ = await rows.call("GET", f"/v1/{path}")
            assert status == 404 and problem["detail"].endswith(
                "not found; those from before 2026-03-01 have left the database for "
                f"read-models/{table} of the archive"
            )
    finally:
        await conn.execute("DELETE FROM retention")
        await conn.close()


async def test_why_names_the_place_in_line_and_what_decided_a_placing(rows: Stack) -> None:
    _, waits, _ = await rows.call("GET", "/v1/jobs/a2/why")
    line = waits["line"]
    assert (line["position"], line["waiting"], line["score"]) == (2, 3, 0.5)
    assert (line["score_ahead"], line["best_score"]) == (2.0, 2.0)
    assert (line["learned"], line["runtime"]) == ("venus", "history")
    assert (waits["placing"], waits["backend"]) == (None, "")
    start = {"p10_at": 50, "p50_at": 60, "p90_at": 90, "coverage": 0.79, "samples": 40}
    assert waits["start"] == {"at": waits["start"]["at"], "of": "job", **start}
    _, placed, _ = await rows.call("GET", "/v1/jobs/a1/why")
    assert placed["line"] is None and placed["start"] is None
    assert placed["placing"]["policy"] == "fcfs" and placed["placing"]["nodes"] == ["n1"]
    assert placed["backend"] == "virtual"
    assert "b1" not in str(waits)


async def test_faults_are_listed_for_their_tenant_and_operators(rows: Stack) -> None:
    for key, names in {"ada": ["a0/1/0/1"], "bob": [], "op": ["a0/1/0/1"]}.items():
        _, content, _ = await rows.call("GET", "/v1/faults", key=key)
        assert [fault["fault_id"] for fault in content["items"]] == names
    (fault,) = content["items"]
    assert (fault["pool"], fault["node_id"], fault["state"]) == ("main", "n1", "suspected")
    assert (fault["slowdown"], fault["health"]) == (2.0, 0.5)
    assert (await rows.call("GET", "/v1/faults?state=cleared"))[1]["items"] == []
    status, ticket, _ = await rows.call("POST", "/v1/faults/a0/1/0/1/dismiss", {}, key="op")
    assert status == 202
    command = await rows.command(ticket["command_id"])
    assert command is not None and command["lane"] == 1


async def test_an_operator_sees_who_preempted(rows: Stack) -> None:
    _, content, _ = await rows.call("GET", "/v1/jobs/a1/timeline", key="op")
    assert content["items"][-1]["data"]["by_job_id"] == "b1"


async def test_nodes_show_how_much_of_each_gpu_is_taken(rows: Stack) -> None:
    for key, fault in {"op": "a0/1/0/1", "ada": ""}.items():
        _, shown, _ = await rows.call("GET", "/v1/nodes/n1", key=key)
        [suspicion] = shown["suspicions"]
        assert (suspicion["fault_id"], suspicion["slowdown"], suspicion["gpu"]) == (fault, 2.0, 5)
    _, content, _ = await rows.call("GET", "/v1/nodes")
    assert [(n["node_id"], n["used_milli"]) for n in content["items"]] == [("n1", [0, 1000])]
    [listed] = content["items"]
    status, shown, _ = await rows.call("GET", "/v1/nodes/n1")
    assert (status, shown | {"as_of": 0}) == (200, listed | {"as_of": 0})
    assert shown["as_of"] >= listed["as_of"]
    assert (await rows.call("GET", "/v1/nodes/n9"))[0] == 404


async def test_a_node_that_is_alive_is_not_forgotten(rows: Stack) -> None:
    status, problem, _ = await rows.call("DELETE", "/v1/nodes/n1", key="op")
    assert (status, problem["reason"]) == (409, "node_alive")
    assert (await rows.call("DELETE", "/v1/nodes/n9", key="op"))[0] == 404


async def test_the_queue_allocations_and_tenants_are_shown(rows: Stack) -> None:
    _, queue, _ = await rows.call("GET", "/v1/queue?pool=main")
    assert [item["job_id"] for item in queue["items"]] == ["a2"]
    _, held, _ = await rows.call("GET", "/v1/allocations?job=a1")
    assert [item["gpus"] for item in held["items"]] == [[1]]
    _, tenant, _ = await rows.call("GET", "/v1/tenants/ada")
    quota = QuotaChanged(tenant="ada", guaranteed_gpus=8)
    assert tenant["quota"][0]["guaranteed_gpus"] == 8
    assert tenant["quota"][0]["version"] == version_of(quota)
    assert tenant["version"] == version_of(
        TenantRegistered(tenant="ada", default_pool="main", number=0)
    )
    _, tenants, _ = await rows.call("GET", "/v1/tenants", key="op")
    assert [(t["tenant"], t["number"]) for t in tenants["items"]] == [("ada", 0), ("bob", 1)]
    assert tenant["number"] == 0
    assert (tenant["bounds"]["highest_class"], tenant["bounds"]["max_streams"]) == ("system", 32)
    assert [pool["pool"] for pool in tenant["use"]["open_jobs"]] == ["main"]
    assert (await rows.call("GET", "/v1/pools"))[1]["items"][0]["pool"] == "main"
    assert (await rows.call("GET", "/v1/endpoints"))[0] == 200


async def test_a_tenant_sees_whether_a_pool_is_open_to_it_but_not_to_whom(rows: Stack) -> None:
    closed = PoolConfigured(pool="vault", partition=3, tenants=("bob",))
    await rows.project("access", 0, 2, closed)
    seen = {}
    for key in ("ada", "bob", "op"):
        _, content, _ = await rows.call("GET", "/v1/pools", key=key)
        [main, vault] = content["items"]
        assert main["open"]
        seen[key] = (vault["open"], vault["settings"].get("tenants"))
    assert seen == {"ada": (False, None), "bob": (True, None), "op": (True, ["bob"])}


async def test_the_answer_to_a_command_is_its_senders(rows: Stack) -> None:
    status, content, _ = await rows.call("GET", "/v1/commands/c-ada")
    assert (status, content["accepted"], content["of"]) == (200, True, "a1")
    assert (await rows.call("GET", "/v1/commands/c-ada", key="bob"))[0] == 404


async def test_an_answer_of_access_is_shown_once_the_gateway_applies_it(rows: Stack) -> None:
    made = CommandAccepted(command_id="c-late", command_type="tenant.retire.v1")
    await rows.project("access", 0, 900, made)
    assert (await rows.call("GET", "/v1/commands/c-late", key="root"))[0] == 404
    await rows.append("access", 0, made)
    async with asyncio.timeout(PATIENCE_S):
        while (content := await rows.call("GET", "/v1/commands/c-late", key="root"))[0] != 200:
            await asyncio.sleep(0.05)
    assert (content[1]["ledger"], content[1]["accepted"]) == ("access", True)


async def test_dead_letters_are_listed_for_their_tenant_and_operators(rows: Stack) -> None:
    for key in ("bob", "op"):
        _, content, _ = await rows.call("GET", "/v1/dead", key=key)
        letter = content["items"][0]
        assert letter["topic"] == "submissions.bob"
        path = f"/v1/dead/{letter['dead_id']}"
        assert (await rows.call("GET", path, key=key))[:2] == (200, letter)
        assert (await rows.call("GET", path, key="ada"))[0] == 404


async def test_a_reason_that_was_stored_with_a_prefix_is_shown_without_it(rows: Stack) -> None:
    stored = InputQuarantined(
        topic="commands",
        partition=0,
        offset=7,
        message_id="c7",
        message_type="job.submit.v1",
        reason="set aside: KeyError: 'x'",
        place="decide.py:1 decide",
        sha256="0" * 64,
        tenant="bob",
    )
    await rows.project("admission", 0, 790, stored)
    _, shown, _ = await rows.call("GET", "/v1/dead/admission/0/790/0", key="op")
    assert (shown["reason"], shown["state"]) == ("KeyError: 'x'", "open")


async def test_a_flood_of_dead_letters_of_one_moment_is_paged(rows: Stack) -> None:
    """They differ in nothing but their ids, which have no fixed width."""
    flood = [
        InputQuarantined(
            topic="commands",
            partition=0,
            offset=offset,
            message_id=f"c{offset}",
            message_type="job.submit.v1",
            reason="KeyError",
            place="decide.py:1 decide",
            sha256="0" * 64,
            tenant="flooded",
        )
        for offset in range(FLOOD)
    ]
    await rows.project("admission", 0, 800, *flood)
    seen: list[int] = []
    query: dict[str, str] = {"limit": "150"}
    while query:
        _, page, _ = await rows.call("GET", f"/v1/dead?{urlencode(query)}", key="op")
        seen += [row["log_offset"] for row in page["items"] if row["tenant"] == "flooded"]
        query = {"limit": "150", "after": page["next"]} if page["next"] else {}
    assert len(seen) == FLOOD and set(seen) == set(range(FLOOD))


async def test_settled_inputs_are_listed_on_request_and_shown_with_their_decision(
    rows: Stack,
) -> None:
    quarantined = [
        InputQuarantined(topic="reports", partition=0, offset=at, reason="E", sha256="0" * 64)
        for at in range(3)
    ]
    await rows.project("access", 0, 850, InputSkipped(input_id="admission/0/860/0", reason="late"))
    await rows.project("access", 0, 851, InputRetryRequested(input_id="admission/0/860/1"))
    await rows.project("admission", 0, 860, *quarantined)
    skipped, retried, open_ = (f"admission/0/860/{index}" for index in range(3))

    async def states(query: str) -> dict[str, str]:
        _, page, _ = await rows.call("GET", f"/v1/dead?limit=1000{query}", key="op")
        ids = {row["dead_id"]: row["state"] for row in page["items"]}
        return {key: ids[key] for key in (skipped, retried, open_) if key in ids}

    assert await states("") == {retried: "retrying", open_: "open"}
    await rows.project("admission", 0, 861, InputRetried(input_id=retried, outcome="decided"))
    assert await states("") == {open_: "open"}
    everything = {skipped: "skipped", retried: "retried", open_: "open"}
    assert await states("&settled=true") == everything
    _, shown, _ = await rows.call("GET", f"/v1/dead/{skipped}", key="op")
    assert (shown["decision"], shown["decision_reason"]) == ("skip", "late")


async def test_a_decision_on_what_was_never_quarantined_is_not_listed(rows: Stack) -> None:
    await rows.project("access", 0, 870, InputSkipped(input_id="admission/0/870/9", reason="x"))
    _, page, _ = await rows.call("GET", "/v1/dead?limit=1000&settled=true", key="op")
    assert "admission/0/870/9" not in {row["dead_id"] for row in page["items"]}
    assert (await rows.call("GET", "/v1/dead/admission/0/870/9", key="op"))[0] == 404


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "after=zz", "after=1", "phase=W%00", "name=%00", "tenant=A"]
)
async def test_a_wrong_query_is_named(rows: Stack, query: str) -> None:
    status, content, _ = await rows.call("GET", f"/v1/jobs?{query}")
    assert (status, content["reason"]) == (422, "invalid")


@pytest.mark.parametrize(
    ("path", "field", "value", "allowed"),
    [
        ("/v1/jobs?phase=runing", "phase", "runing", "'running'"),
        ("/v1/jobs?pool=mian", "pool", "mian", "main, side"),
        ("/v1/jobs?tenant=carol", "tenant", "carol", "ada, bob"),
        ("/v1/jobs?array=none", "array", "none", "/v1/jobs"),
        ("/v1/nodes?pool=mian", "pool", "mian", "main, side"),
        ("/v1/queue?pool=mian", "pool", "mian", "main, side"),
        ("/v1/allocations?pool=mian", "pool", "mian", "main, side"),
        ("/v1/allocations?job=none", "job", "none", "/v1/jobs"),
        ("/v1/faults?pool=mian", "pool", "mian", "main, side"),
        ("/v1/faults?node=n9", "node", "n9", "/v1/nodes"),
        ("/v1/faults?state=open", "state", "open", "'suspected'"),
        ("/v1/events?types=job.placd.v1", "types", "job.placd.v1", "job.placed.v1"),
        ("/v1/audit?action=key.creat.v1", "action", "key.creat.v1", "key.create.v1"),
        ("/v1/audit?outcome=denied", "outcome", "denied", "'refused'"),
    ],
)
async def test_a_filter_that_no_row_can_pass_is_named(
    rows: Stack, path: str, field: str, value: str, allowed: str
) -> None:
    status, content, _ = await rows.call("GET", path, key="op")
    [error] = content["errors"]
    assert (status, error["field"], error["value"]) == (422, field, value)
    assert allowed in error["rule"]


async def test_a_filter_may_pass_no_row(rows: Stack) -> None:
    for path in ("/v1/jobs?pool=side", "/v1/allocations?job=b1", "/v1/faults?node=n1&pool=side"):
        status, content, _ = await rows.call("GET", path, key="op")
        assert (status, content["items"]) == (200, [])


async def test_no_key_reads_nothing(rows: Stack) -> None:
    for path in ("/v1/jobs", "/v1/nodes", "/v1/queue", "/v1/events", "/v1/dead", "/v1/pools"):
        status, content, headers = await rows.call("GET", path, key="")
        assert (status, content["reason"]) == (401, "unauthenticated")
        assert headers["WWW-Authenticate"].startswith("Bearer")


async def test_a_new_job_shows_the_estimate_of_the_last_one_of_its_size_until_it_has_its_own(
    rows: Stack,
) -> None:
    """Of the same tenant's jobs; a job that has left the queue shows none."""
    gang = Gang(workers=1, gpus_per_worker=8)
    await admit(rows, 60, "a3", "ada")
    await admit(rows, 61, "a4", "ada", SPEC.model_copy(update={"gang": gang}))
    starts = {}
    for job in ("a1", "a2", "a3", "a4", "b1"):
        _, shown, _ = await rows.call("GET", f"/v1/jobs/{job}", key="op")
        starts[job] = shown["start"] and (shown["start"]["of"], shown["start"]["p50_at"])
    assert starts == {"a1": None, "a2": ("job", 60), "a3": ("queue", 60), "a4": None, "b1": None}


async def test_a_submission_is_answered_with_the_estimate_of_the_last_job_of_its_size(
    rows: Stack,
) -> None:
    async def start_of(key: str, gpus: int, name: str) -> object:
        body = {"name": name, "command": ["true"], "gang": {"workers": 1, "gpus_per_worker": gpus}}
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            _, receipt, _ = await rows.call("POST", "/v1/jobs", body, key=key)
            start = receipt["start"]
            if start is not None or asyncio.get_running_loop().time() > deadline or gpus != 1:
                return start
            await asyncio.sleep(1.1)

    start = await start_of("ada", 1, "like-a2")
    assert isinstance(start, dict) and (start["of"], start["p50_at"]) == ("queue", 60)
    assert await start_of("ada", 3, "unlike-any") is None
