"""Sessions of agents over HTTP: orders, reports, heartbeats, identities and restarts."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from infra.security import certificates
from services.executor.agents.relay import Relay
from services.executor.settings import ExecutorSettings
from shared.bus.logs.memory import MemoryLog
from shared.contracts.access import KeyCreated, TenantRegistered
from shared.contracts.attempts import JobStarted
from shared.contracts.enrolment import NodeRevoked
from shared.contracts.keys import hash_secret
from shared.contracts.registry import AccessView
from shared.contracts.series import SERIES_CHARS
from shared.ledger.partition import TP
from shared.process.settings import BadSettings, read_settings
from tests.harness.flaky_log import FlakyLog
from tests.patience import PATIENCE_S, until
from tests.services.executor.agents.installation import Agent, Installation, enrolled
from tests.services.executor.core.agents.history import POOL, UUID, joined

STARTED = JobStarted(job_id="j", tenant="ada", attempt=1, master_port=4321)


@pytest.fixture
def site(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


async def test_an_agent_registers_joins_and_gets_its_orders(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as agent:
        welcome = await agent.hello()
        assert (welcome["action"], welcome["last_generation"]) == ("register", 0)
        assert welcome["terms"]["stop_after_s"] == 600
        registration = {
            "kind": "registration",
            "incarnation": agent.incarnation,
            "boot_id": "boot",
            "pid_namespace": "p",
            "hardware": "hw",
            "gpu_type": "a100",
            "gpus": 2,
            "cpus": 8,
            "mem_gib": 64,
        }
        assert await agent.reports(registration) == (200, {"n": 1})
        [record] = site.sent("reports")
        assert record["reports"][0]["node_id"] == "n1"
        waiting = asyncio.create_task(agent.orders(wait_s=30))
        name = site.place()
        kinds = []
        after = None
        async with asyncio.timeout(PATIENCE_S):
            while "prepare" not in kinds:
                status, answer = await waiting
                assert status == 200
                kinds += [order["kind"] for order in answer["orders"]]
                after = answer["through"]
                waiting = asyncio.create_task(agent.orders(after, wait_s=30))
            site.placement.write([STARTED])
            _, answer = await waiting
        assert [(o["kind"], o["allocation_id"]) for o in answer["orders"]][0] == ("go", name)
        assert answer["orders"][0]["master_port"] == 4321


async def test_an_order_has_the_number_of_its_tenant(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        site.place()

        async def received() -> int | None:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    _, answer = await agent.orders(wait_s=1)
                    for order in answer["orders"]:
                        if order["kind"] == "prepare":
                            number: int | None = order["launch"].get("tenant_number")
                            return number

        assert await received() is None
        tenants = [TenantRegistered(tenant=name, default_pool="gpu") for name in ("bob", "ada")]
        site.access.write(tenants)
        assert await received() == 1


async def test_orders_and_confirmations_share_the_bound_of_an_answer(site: Installation) -> None:
    name = site.place()
    held = [f"9/1/0/{number}" for number in range(1000)]
    steps = [{"allocation_id": held_id, "phase": "running"} for held_id in held]
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello(steps=steps)
        after, received, sizes = None, [], []
        async with asyncio.timeout(PATIENCE_S):
            while name not in received:
                status, answer = await agent.orders(after, wait_s=1)
                assert status == 200, answer
                after = answer["through"]
                received += [order["allocation_id"] for order in answer["orders"]]
                sizes.append(len(answer["orders"]))
    assert max(sizes) == 500
    assert set(held) <= set(received)


async def test_reports_are_acknowledged_only_after_the_broker_and_repeats_are_harmless(
    site: Installation,
) -> None:
    flaky: list[FlakyLog] = []

    def connect() -> FlakyLog:
        flaky.append(FlakyLog(MemoryLog(site.broker)))
        return flaky[-1]

    site.connect = connect
    name = site.place()
    ready = {"kind": "ready", "allocation_id": name}
    exited = {"kind": "exited", "allocation_id": name, "exit_code": 0}
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        for log in flaky:
            log.accidents.append("lost_request")
        status, problem = await agent.reports(ready)
        assert (status, problem["reason"]) == (503, "broker_unavailable")
        assert site.sent("reports") == []
        assert await agent.reports(ready) == (200, {"n": 1})
        assert await agent.reports(ready, exited) == (200, {"n": 2})
        assert await agent.reports(ready, exited) == (200, {"n": 2})
        kinds = [report["kind"] for record in site.sent("reports") for report in record["reports"]]
        assert kinds == ["worker_ready", "worker_exited"]
        status, problem = await agent.reports(exited, first_n=9)
        assert (status, problem["detail"]) == (400, "first_n: 9; at most 3 is allowed")


async def test_heartbeats_of_many_nodes_are_one_record(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that arrive while one record is appended are the next one."""
    came, put = 0, Relay.put

    async def counted(relay: Relay[Any], *item: Any, **more: Any) -> None:
        nonlocal came
        came += 1
        await put(relay, *item, **more)

    async def until_all_came(tp: TP) -> None:
        if tp.topic == "heartbeats":
            await until(lambda: came == 20)

    def connect() -> FlakyLog:
        log = FlakyLog(MemoryLog(site.broker))
        log.before_append = until_all_came
        return log

    monkeypatch.setattr(Relay, "put", counted)
    site.connect = connect
    site.access.write([enrolled(f"m{number}") for number in range(20)])
    async with site.serving():
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(_beats(site, f"m{number}"))
        records = site.sent("heartbeats")
        heartbeats = {node: alive for record in records for node, alive in record["nodes"].items()}
        assert len(heartbeats) == 20
        assert heartbeats["m7"] == {"incarnation": UUID, "sent_boot_ms": 7}
        assert len(records) <= 2


async def _beats(site: Installation, node_id: str) -> None:
    async with site.agent(node_id) as agent:
        await agent.hello()
        assert await agent.send_heartbeat(int(node_id[1:])) == 204


async def test_a_node_cannot_speak_for_another(site: Installation) -> None:
    name = site.place()
    async with site.serving(), site.agent("n1") as mine, site.agent("n2") as other:
        await mine.hello()
        await other.hello()
        status, problem = await other.reports(
            {"kind": "exited", "allocation_id": name, "exit_code": 0}
        )
        assert (status, problem["reason"]) == (403, "other_node")
        lines = [{"allocation_id": name, "first_line": 0, "lines": ["forged"]}]
        body = {"session_id": other.session_id, "printed": lines}
        assert (await other.post("stream", body))[0] == 403
        other.session_id = mine.session_id
        assert (await other.orders())[0] == 409
        assert site.sent("reports") == [] == site.sent("logs")


async def test_a_worker_of_an_installation_that_the_node_left_delays_no_report(
    site: Installation,
) -> None:
    name = site.place()
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        status, _ = await agent.reports(
            {"kind": "stopped", "allocation_id": "0/99999/0/0"},
            {"kind": "stopped", "allocation_id": "7/3/0/0"},
            {"kind": "ready", "allocation_id": name},
        )
        assert status == 200 and len(site.sent("reports")) == 1


async def test_output_and_telemetry_carry_what_the_ledger_knows(site: Installation) -> None:
    name = site.place()
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        body = {
            "session_id": agent.session_id,
            "printed": [{"allocation_id": name, "first_line": 3, "lines": ["epoch 1"]}],
            "iterations": [
                {"allocation_id": name, "rank": 1, "iteration_s": [0.5], "own_s": [0.25]}
            ],
            "measured": {"compute_s": 0.02, "copy_s": 0.01, "gpus": [{"gpu": 0, "sm_mhz": 1980}]},
        }
        assert await agent.post("stream", body) == (204, None)
        async with asyncio.timeout(PATIENCE_S):
            while not (site.sent("logs") and site.sent("telemetry")):
                await asyncio.sleep(0.01)
    [lines], [telemetry] = site.sent("logs"), site.sent("telemetry")
    assert (lines["job_id"], lines["tenant"], lines["rank"], lines["attempt"]) == ("j", "ada", 1, 1)
    assert (lines["first_line"], lines["lines"]) == (3, ["epoch 1"])
    [times] = telemetry["times"]
    assert (times["node_id"], times["iteration_s"], times["own_s"]) == ("n1", [0.5], [0.25])
    assert len(times["series"]) == SERIES_CHARS
    [node] = telemetry["nodes"]
    assert (node["node_id"], node["compute_s"], node["gpus"][0]["sm_mhz"]) == ("n1", 0.02, 1980)
    assert node["gpu_type"]


async def test_a_newer_session_replaces_the_older(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as old, site.agent("n1") as new:
        await old.hello()
        waiting = asyncio.create_task(old.orders(wait_s=60))
        await asyncio.sleep(0)
        await new.hello()
        status, problem = await asyncio.wait_for(waiting, PATIENCE_S)
        assert (status, problem["reason"]) == (409, "unknown_session")
        assert await new.send_heartbeat(1) == 204
        assert await old.send_heartbeat(2) == 409


async def test_a_copy_of_a_node_that_lives_is_refused_and_the_first_goes_on(
    site: Installation,
) -> None:
    site.placement.write([joined("n1")])
    async with site.serving(), site.agent("n1") as first, site.agent("n1") as copy:
        assert (await first.hello(process="a1"))["action"] == "continue"
        there = {"process": "b2", "boot_id": "another"}
        copy.incarnation = {"generation": 2, "uuid": "f" * 32}
        with pytest.raises(AssertionError, match="identity_in_use"):
            await copy.hello(**there)
        assert await first.send_heartbeat(1) == 204
        with pytest.raises(AssertionError, match=r"cloned_identity.*n1.*berth nodes token --pool"):
            await copy.hello(**there)
        assert await first.send_heartbeat(2) == 204
        assert (await first.orders())[0] == 200
        assert site.sent("reports") == [], "the upgrade is not finished"
        site.placement.write([POOL.model_copy(update={"release": 1})])
        async with asyncio.timeout(PATIENCE_S):
            while not site.sent("reports"):
                assert await first.send_heartbeat(3) == 204
                with pytest.raises(AssertionError, match="cloned_identity"):
                    await copy.hello(**there)
                await asyncio.sleep(0.05)
        [[problem]] = [sent["problems"] for sent in site.sent("reports")]
        assert (problem["problem"], problem["present"]) == ("cloned_identity", True)
        # A restart on its machine, and one by an agent of an earlier release, are let in at once.
        assert (await first.hello(process="a2"))["action"] == "continue"
        assert (await first.hello())["action"] == "continue"


async def test_problems_of_gpus_in_heartbeats_are_reported_and_unknown_ones_are_not(
    site: Installation,
) -> None:
    site.placement.write([POOL.model_copy(update={"release": 1})])
    site.placement.write([joined("n1")])
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        assert await agent.send_heartbeat(1) == 204
        conditions = {"gpu_fault": "GPU 3: Xid 79", "gpu_slow": "", "inventory_problem": "gpus: 8"}
        assert await agent.send_heartbeat(2, **conditions, faulty_gpus=[3]) == 204
        async with asyncio.timeout(PATIENCE_S):
            while not site.sent("reports"):
                await asyncio.sleep(0.01)
    [problems] = [sent["problems"] for sent in site.sent("reports")]
    assert {(one["problem"], one["present"], one["detail"], *one["gpus"]) for one in problems} == {
        ("gpu_fault", True, "GPU 3: Xid 79", 3),
        ("inventory_differs", True, "gpus: 8"),
    }


async def test_containers_of_one_machine_with_networks_of_their_own_are_two_agents(
    site: Installation,
) -> None:
    """They share the pid namespace, but not the socket by which an agent is alone there."""
    site.placement.write([joined("n1")])
    async with site.serving(), site.agent("n1") as first, site.agent("n1") as copy:
        await first.hello(process="a1", network_namespace="net:[1]")
        for incarnation in (first.incarnation, {"generation": 2, "uuid": "f" * 32}):
            copy.incarnation = incarnation
            with pytest.raises(AssertionError, match="identity_in_use"):
                await copy.hello(process="b2", network_namespace="net:[2]")
        assert (await first.hello(process="a2", network_namespace="net:[1]"))["action"]
        # An agent of an earlier release does not name its network.
        assert (await copy.hello(process="b2"))["action"] == "register"


async def test_an_agent_with_the_joined_incarnation_takes_its_session_back_from_a_copy(
    site: Installation,
) -> None:
    """As after a restart of the executor, where the copy came first."""
    site.placement.write([joined("n1")])
    async with site.serving(), site.agent("n1") as first, site.agent("n1") as copy:
        copy.incarnation = {"generation": 2, "uuid": "f" * 32}
        there = {"process": "b2", "boot_id": "another"}
        assert (await copy.hello(**there))["action"] == "register"
        assert (await first.hello(process="a1"))["action"] == "continue"
        assert await copy.send_heartbeat(1) == 409
        with pytest.raises(AssertionError, match="identity_in_use"):
            await copy.hello(**there)


async def test_a_revoked_node_is_refused_while_it_waits(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        waiting = asyncio.create_task(agent.orders(wait_s=60))
        site.access.write([NodeRevoked(node_id="n1")])
        status, problem = await asyncio.wait_for(waiting, PATIENCE_S)
        assert (status, problem["reason"]) == (403, "node_revoked")
        assert (await agent.post("hello", {}))[0] == 403


async def test_a_node_that_enrols_now_is_known_at_once(site: Installation) -> None:
    async with site.serving(), site.agent("late", "new") as agent:
        assert (await agent.post("hello", {}))[0] == 401
        site.access.write([enrolled("late", credential_sha256=hash_secret("new"))])
        assert (await agent.hello())["action"] == "register"


async def test_sessions_and_refusals_are_figures(site: Installation) -> None:
    async with site.serving() as server, site.agent("n1") as agent, site.agent("n1", "no") as thief:
        await agent.hello(version="7.8")
        assert (await thief.post("hello", {}))[0] == 401
        value = server.metrics.registry.get_sample_value
        assert value("berth_agent_sessions", {"pool": "gpu", "version": "7.8"}) == 1
        assert value("berth_agent_refusals_total", {"reason": "unknown_credential"}) == 1


async def test_another_machine_is_refused(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as agent:
        with pytest.raises(AssertionError, match="machine_changed"):
            await agent.hello(hardware="another")
        with pytest.raises(AssertionError, match="other_node"):
            await agent.hello(node_id="n2")


async def test_a_generation_far_above_the_last_is_refused_and_uses_up_no_name(
    site: Installation,
) -> None:
    async with site.serving(), site.agent("n1") as agent:
        wrong = agent.incarnation | {"generation": 2**53 - 1}
        with pytest.raises(AssertionError, match="generation_too_high"):
            await agent.hello(incarnation=wrong)
        answer = await agent.hello()
        assert (answer["action"], answer["last_generation"]) == ("register", 0)


async def test_a_machine_that_was_named_otherwise_when_it_joined_is_the_same(
    site: Installation,
) -> None:
    async with site.serving(), site.agent("n1") as agent:
        answer = await agent.hello(hardware="board", former_hardware=("other", "hw"))
        assert answer["action"] == "register"
        with pytest.raises(AssertionError, match="machine_changed"):
            await agent.hello(hardware="board", former_hardware=("other",))


async def test_a_session_resumes_at_a_restarted_executor(site: Installation) -> None:
    name = site.place()
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        old_session = agent.session_id
        _, first = await agent.orders()
        assert [o["kind"] for o in first["orders"]] == ["joined", "prepare", "prepare"]
    site.placement.write([STARTED])
    async with site.serving(), site.agent("n1") as agent:
        agent.session_id, applied = old_session, first["through"]
        assert (await agent.orders(applied))[0] == 409
        welcome = await agent.hello(
            applied=applied, steps=[{"allocation_id": name, "phase": "prepared"}]
        )
        assert welcome["action"] == "continue"
        _, answer = await agent.orders(applied)
        kinds = [(order["kind"], order["allocation_id"]) for order in answer["orders"]]
        assert kinds[0] == ("confirm", name) and ("go", name) in kinds
    assert site.sent("reports") == []


async def test_an_executor_that_is_behind_sends_the_agent_on(site: Installation) -> None:
    logs: list[FlakyLog] = []

    def connect() -> FlakyLog:
        logs.append(FlakyLog(MemoryLog(site.broker)))
        return logs[-1]

    site.connect = connect
    async with site.serving(), site.agent("n1") as agent:
        for log in logs:
            log.is_end_unknown = True
        ahead = {"seq": 99, "index": 0}
        assert (await agent.hello(applied=ahead))["action"] == "behind"
        status, problem = await agent.orders(ahead)
        assert (status, problem["reason"]) == (503, "behind")
        assert await agent.send_heartbeat(1) == 204


async def test_an_executor_that_cannot_read_its_ledger_gives_no_orders(
    site: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fencing, rule 9: what it has folded may be old, though an agent is not ahead of it."""
    async with site.serving(), site.agent("n1") as agent:
        assert (await agent.hello())["action"] != "behind"
        monkeypatch.setattr("services.executor.agents.lane.BEHIND_AFTER_S", -1.0)
        status, problem = await agent.orders()
        assert (status, problem["reason"]) == (503, "behind")
        assert await agent.send_heartbeat(1) == 204
        assert (await agent.hello())["action"] == "behind"


async def test_a_session_names_the_executors_of_nodes(tmp_path: Path) -> None:
    site = Installation(tmp_path, node_executors="https://a:1,https://b:1")
    async with site.serving(), site.agent("n1") as agent:
        assert (await agent.hello())["executors"] == ["https://a:1", "https://b:1"]


async def test_a_session_names_the_id_of_the_installation_once_there_is_one(
    site: Installation,
) -> None:
    key = KeyCreated(key_id="k", sha256="0" * 64, role="operator", tenant=None)
    view = AccessView()
    view.apply(key)
    async with site.serving(), site.agent("n1") as agent:
        assert (await agent.hello())["installation"] == ""
        site.access.write([key])
        async with asyncio.timeout(PATIENCE_S):
            while not (named := (await agent.hello())["installation"]):
                await asyncio.sleep(0.01)
        assert named == view.installation


async def test_an_agent_that_is_ahead_of_the_whole_ledger_is_fenced(site: Installation) -> None:
    """The ledger was restored from a backup, or is that of the pool that the node moved to."""
    site.place()
    async with site.serving(), site.agent("n1") as agent:
        ahead = {"seq": 99, "index": 0}
        assert (await agent.hello(applied=ahead))["action"] == "fence"
        agent.incarnation = {"generation": 2, "uuid": "b" * 32}
        welcome = await agent.hello()
        assert (welcome["action"], welcome["last_generation"]) == ("register", 1)
        status, answer = await agent.orders()
        assert status == 200 and {order["incarnation"] for order in answer["orders"]} == {UUID}


async def test_an_agent_that_read_a_newer_record_than_the_executor_goes_on(
    site: Installation,
) -> None:
    site.place()
    async with site.serving(), site.agent("n1") as agent:
        site.placement.write([STARTED])
        assert (await agent.hello(applied={"seq": 4, "index": 0}))["action"] == "continue"


async def test_pools_are_served_once_they_name_agents(site: Installation) -> None:
    later = POOL.model_copy(update={"pool": "later", "partition": 2})
    async with site.serving() as server:
        site.access.write([later])
        async with asyncio.timeout(PATIENCE_S):
            while server.health().get("pools") != ["gpu", "later"]:
                await asyncio.sleep(0.01)


def test_beyond_the_loopback_it_listens_over_tls_alone(tmp_path: Path) -> None:
    settings = {
        "BERTH_KAFKA": "127.0.0.1:1",
        "BERTH_DATA": str(tmp_path),
        "BERTH_EXECUTOR_ID": "e1",
        "BERTH_HOST": "0.0.0.0",
    }
    with pytest.raises(BadSettings, match="set tls_cert and tls_key"):
        read_settings(ExecutorSettings, settings)


async def test_it_serves_tls_from_files(tmp_path: Path) -> None:
    certificates.make(tmp_path)
    site = Installation(tmp_path, tls_cert=tmp_path / "api.crt", tls_key=tmp_path / "api.key")
    trust = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    async with site.serving(), site.agent("n1", trust=trust) as agent:
        assert (await agent.hello())["action"] == "register"


async def test_the_nodes_of_the_lane_join_and_leave_by_the_ledger_alone(site: Installation) -> None:
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        site.placement.write([joined("n1")])
        async with asyncio.timeout(PATIENCE_S):
            while (await agent.hello())["action"] != "continue":
                await asyncio.sleep(0.01)


async def test_checkpoints_of_rank_0_reach_placement_at_a_bounded_rate(site: Installation) -> None:
    name = site.place()
    rank_0 = f"{name.rpartition('/')[0]}/0"
    async with site.serving(), site.agent("n1") as other, site.agent("n2") as agent:
        await other.hello()
        await agent.hello()

        async def post(node: Agent, *names: str) -> int:
            checkpoints = [{"allocation_id": n, "ran_ms": 7_000, "step": 5} for n in names]
            body = {"session_id": node.session_id, "checkpoints": checkpoints}
            return int((await node.post("stream", body))[0])

        assert await post(other, rank_0) == 403, "a worker of another node"
        assert await post(other, name) == 204, "rank 1 does not speak for the gang"
        assert await post(agent, rank_0, *[rank_0] * 500, "0/99999/0/0") == 204
        async with asyncio.timeout(PATIENCE_S):
            while not site.sent("reports"):
                await asyncio.sleep(0.01)
    [record] = site.sent("reports")
    assert record["checkpoints"] == [
        {"allocation_id": rank_0, "job_id": "j", "ran_ms": 7_000, "step": 5}
    ]


async def test_progress_of_rank_0_reaches_placement_at_a_bounded_rate(site: Installation) -> None:
    name = site.place()
    rank_0 = f"{name.rpartition('/')[0]}/0"
    reported = {"ran_ms": 7_000, "step": 5, "steps_total": 9, "iteration_s": 0.5}
    async with site.serving(), site.agent("n1") as other, site.agent("n2") as agent:
        await other.hello()
        await agent.hello()

        async def post(node: Agent, *names: str, **changes: object) -> int:
            progress = [{"allocation_id": n, **reported, **changes} for n in names]
            body = {"session_id": node.session_id, "progress": progress}
            return int((await node.post("stream", body))[0])

        assert await post(other, rank_0) == 403, "a worker of another node"
        assert await post(other, name) == 204, "rank 1 does not speak for the gang"
        assert await post(agent, rank_0, steps_total=0) == 400
        assert await post(agent, rank_0, *[rank_0] * 500, "0/99999/0/0") == 204
        async with asyncio.timeout(PATIENCE_S):
            while not site.sent("reports"):
                await asyncio.sleep(0.01)
    [record] = site.sent("reports")
    assert record["progress"] == [{"allocation_id": rank_0, "job_id": "j", **reported}]
