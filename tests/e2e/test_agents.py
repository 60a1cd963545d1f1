"""Nodes with an agent in a whole stack: jobs run there, and survive whoever is killed but them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from benchmarks.parts.chaos.faults import paused
from berth_agent.linux import processes
from cli.errors import UNREACHABLE
from cli.main import app
from infra.image import node as node_image
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import supervise
from infra.supervisor.stack import AGENT as OWN_AGENT
from infra.supervisor.stack import AGENT_EXECUTOR
from shared.bus.kafka import KafkaLog
from shared.contracts.identity import derive_job_id
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.ledger.partition import TP
from tests.agent.node_bench import NodeBench
from tests.agent.step_bench import AGENT
from tests.e2e.distant_gateway import (
    DistantGateway,
    Fault,
    Following,
    a_distant_gateway,
    a_newcomer,
    joining,
    renewing,
)
from tests.e2e.joined import JoinedNode, a_joined_node, make_token
from tests.e2e.stand import LOCAL_POOL, Json, Stand, a_command, a_stand, eventually
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.stack
NODES_PAGE = Path(__file__).parents[2] / "docs" / "operations" / "nodes.md"
POOL, SHORT = "gpu", "short"
SHORT_TERMS = {
    "stop_after_s": 15,
    "heartbeat_s": 0.5,
    "request_timeout_s": 5,
    "reconnect_s": 0.5,
    "suspect_after_s": 6,
    "kill_s": 5,
    "clock_rate_bound": 1,
    "slack_s": 0,
}
WAITS = "echo started; read word < {fifo}; echo got $word; exit 5"
"""Runs until the test writes to the FIFO."""
TICKS = """
import os, sys, time
path, end = sys.argv[1:]
while not os.path.exists(end):
    line = f"{os.environ['BERTH_ATTEMPT']} {time.clock_gettime_ns(time.CLOCK_BOOTTIME)}\\n"
    with open(path, "a") as log:
        log.write(line)
    time.sleep(0.05)
"""
"""Notes its attempt and the boot time twenty times a second, until a file is there."""
AWAY = re.compile("no_answer: |is not reachable: |starting: |_unavailable: ")
"""In errors of clients while the gateway is away, or starts."""
RANKED = {
    "base_policy": "sjf",
    "runtime": "user",
    "preemption": "ranked",
    "min_residency_s": 0,
    "start_protection_s": 0,
    "preempt_margin": 0,
    "checkpoint_window_s": 600,
    "loss_share": 1,
    "large_gang_share": 1,
}
SAVES = """
import os, sys, time
reporter, saved = sys.argv[1:]
sys.path.insert(0, reporter)
from berth_reporter import checkpoint
while not os.path.exists(saved):
    time.sleep(0.05)
while True:
    checkpoint(step=42)
    time.sleep(1)
"""
"""Says again and again that it has written a checkpoint, once a file is there."""


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with a_stand(OWN_AGENT, "failslow", "throttle", tls=True) as stand:
        berth(stand, "pools", "add", POOL, "backends=agent")
        terms = [f"{name}={value}" for name, value in SHORT_TERMS.items()]
        berth(stand, "pools", "add", SHORT, "backends=agent", *terms)
        yield stand


@pytest.fixture(scope="module")
def node(stand: Stand) -> Iterator[JoinedNode]:
    with a_joined_node(stand, POOL, "agent-1") as node:
        yield node


def submit(stand: Stand, command: list[str] | str, pool: str = POOL, **spec: object) -> str:
    words = ["sh", "-c", command] if isinstance(command, str) else command
    body = {"pool": pool, "spec": {"name": "job", "gang": {"workers": 1}, "command": words, **spec}}

    def taken() -> Json | None:
        status, ticket = stand.call("POST", "/v1/jobs", body, caller="ada")
        return ticket if status == 202 else None

    return str(eventually(taken)["job_id"])


def is_set(stand: Stand, name: str, value: str) -> bool:
    return stand.call("PUT", f"/v1/secrets/{name}", {"value": value}, caller="ada")[0] == 202


def berth(stand: Stand, *words: str) -> str:
    """Return what the command prints; it is repeated while a busy broker lets it fail."""

    def ended() -> Result | None:
        done = CliRunner().invoke(app, [*words, "--data", str(stand.stack.data_dir)])
        return None if done.exit_code == UNREACHABLE else done

    done = eventually(ended)
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout


def output(stand: Stand, job_id: str) -> list[str]:
    document = stand.get(f"/v1/jobs/{job_id}/logs?tail=1000")
    return [f"{line['rank']}: {line['text']}" for line in document["lines"]] if document else []


class Waiting:
    """A running job that ends with exit code 5 when the test writes to its FIFO."""

    def __init__(self, stand: Stand, node: JoinedNode, tmp: Path) -> None:
        self.fifo = tmp / "fifo"
        os.mkfifo(self.fifo)
        self._stand, self._node = stand, node
        self.job_id = submit(stand, WAITS.format(fifo=self.fifo))
        eventually(lambda: "0: started" in output(stand, self.job_id))
        [allocation_id] = node.workers_of(self.job_id)
        self.step = node.step(allocation_id)

    def is_alive(self) -> bool:
        return processes.is_alive(self.step["pid"], self.step["ticks"])

    def ends(self) -> None:
        """Tell it to end; it ran once, under the step that started it."""
        assert self.is_alive()
        self.fifo.write_text("enough\n")
        row = self._stand.ended(self.job_id)
        assert (row["phase"], row["exit_code"], row["attempt"]) == ("failed", 5, 1)
        eventually(lambda: "0: got enough" in output(self._stand, self.job_id))


@pytest.fixture
def waiting(stand: Stand, node: JoinedNode, tmp_path: Path) -> Waiting:
    return Waiting(stand, node, tmp_path)


def test_a_job_runs_with_its_output_and_exit_code(stand: Stand, node: JoinedNode) -> None:
    job_id = submit(stand, "echo hello; echo there >&2; exit 3")
    row = stand.ended(job_id)
    assert (row["phase"], row["exit_code"], row["nodes"]) == ("failed", 3, ["agent-1"])
    eventually(lambda: len(output(stand, job_id)) == 2)
    for words in (("logs",), ("logs", "-f")):
        lines = berth(stand, *words, job_id).splitlines()
        assert sorted(lines) == ["[1/0] hello", "[1/0] there"]
    shown = next(line for line in berth(stand, "nodes").splitlines() if "agent-1" in line)
    assert "agent" in shown and POOL in shown


def test_the_jobs_of_an_array_run_its_program_that_is_recorded_once(
    stand: Stand, node: JoinedNode
) -> None:
    body = {
        "pool": POOL,
        "array_size": 3,
        "spec": {
            "name": "sweep",
            "gang": {"workers": 1, "gpus_per_worker": 0},
            "command": ["sh", "-c", "echo $GREETING $BERTH_ARRAY_INDEX"],
            "env": {"GREETING": "hello"},
        },
    }
    status, ticket = stand.call("POST", "/v1/jobs", body, caller="ada")
    assert status == 202
    jobs: list[str] = ticket["job_ids"]
    assert [stand.ended(job_id)["phase"] for job_id in jobs] == ["succeeded"] * 3
    expected = [[f"0: hello {index}"] for index in range(3)]
    eventually(lambda: [output(stand, job_id) for job_id in jobs] == expected)


def test_a_missing_program_is_explained_and_not_tried_again(stand: Stand, node: JoinedNode) -> None:
    job_id = submit(stand, ["no-such-program"], retry={"max_attempts": 5})
    row = stand.ended(job_id)
    assert (row["phase"], row["attempt"]) == ("failed", 1)
    why = berth(stand, "why", job_id)
    assert "no-such-program: not in PATH" in why and "it was not tried again" in why


def test_a_job_gets_its_secrets_and_fails_at_once_without_them(
    stand: Stand, node: JoinedNode, tmp_path: Path
) -> None:
    for name in ("db", "absent"):
        eventually(partial(is_set, stand, name, "sesame"))
    before = submit(stand, "sleep 2")
    there, absent = (
        submit(
            stand,
            f'touch {tmp_path}/{name}; test "$PASS" = sesame',
            env={"PASS": f"secret://{name}"},
            retry={"max_attempts": 5},
            depends_on=[before],
        )
        for name in ("db", "absent")
    )
    assert stand.call("DELETE", "/v1/secrets/absent", caller="ada")[0] == 202
    assert stand.ended(there)["phase"] == "succeeded"
    failed = stand.ended(absent)
    assert (failed["phase"], failed["attempt"]) == ("failed", 1)
    assert failed["failure"]["reason"] == "secret_missing"
    for shown in (berth(stand, "why", absent), berth(stand, "show", absent)):
        assert "a secret is missing: env.PASS: 'absent'; tenant ada has no such secret" in shown
        assert "to do: set it by `berth secrets set NAME`" in shown
    assert "secret_missing" in berth(stand, "jobs", "--failed")
    assert [path.name for path in tmp_path.iterdir()] == ["db"]


def test_the_workers_of_a_gang_find_each_other(stand: Stand, node: JoinedNode) -> None:
    shown = "echo $RANK/$WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT gpu $CUDA_VISIBLE_DEVICES"
    job_id = submit(stand, shown, gang={"workers": 2})
    assert stand.ended(job_id)["phase"] == "succeeded"
    lines = eventually(lambda: both if len(both := output(stand, job_id)) == 2 else None)
    first, second = sorted(lines)
    address = first.split()[3]
    host, _, port = address.partition(":")
    assert host == "127.0.0.1" and int(port) > 0
    assert first.startswith(f"0: 0/2 at {address} gpu ")
    assert second.startswith(f"1: 1/2 at {address} gpu ")
    assert {line.split()[-1] for line in lines} == {"0", "1"}


def test_a_cancelled_job_is_stopped_on_its_node(
    stand: Stand, node: JoinedNode, waiting: Waiting
) -> None:
    berth(stand, "cancel", waiting.job_id)
    assert stand.ended(waiting.job_id)["phase"] == "cancelled"
    eventually(lambda: not waiting.is_alive())


def test_a_killed_executor_stops_no_worker(stand: Stand, waiting: Waiting) -> None:
    before = supervise.pid_of(stand.stack.data_dir, AGENT_EXECUTOR)
    os.kill(before, signal.SIGKILL)
    eventually(lambda: supervise.pid_of(stand.stack.data_dir, AGENT_EXECUTOR) not in (0, before))
    waiting.ends()


@pytest.fixture(scope="module")
def gateway(stand: Stand) -> Iterator[DistantGateway]:
    with a_distant_gateway(stand) as gateway:
        yield gateway


@pytest.mark.parametrize("fault", ["paused", "killed", "cut"])
def test_a_gateway_that_is_away_is_missed_by_its_clients_alone(
    stand: Stand,
    node: JoinedNode,
    waiting: Waiting,
    gateway: DistantGateway,
    tmp_path: Path,
    fault: Fault,
) -> None:
    """Jobs start, run and end; clients of the gateway get errors, and repeat what they want."""
    marker, ca = tmp_path / "marker", stand.stack.ca if stand.stack.tls else None
    with (
        a_newcomer(stand, f"known-{fault}") as known,
        a_newcomer(stand, f"new-{fault}") as new,
        ExitStack() as ends,
    ):
        joining(known, gateway, token_of_one_node(stand), ca).wait()
        token, following = (
            token_of_one_node(stand),
            Following(stand, gateway, waiting.job_id, tmp_path),
        )
        ends.callback(following.close)
        lane = stand.job(waiting.job_id)["partition"]  # type: ignore[index]
        eventually(lambda: is_connected(node))
        before = node.status()
        with gateway.away(fault):
            clients = [joining(new, gateway, token, ca), renewing(known), following.to_the_end()]
            for client in clients:
                ends.enter_context(client)
            submit_without_gateway(stand, lane, ["touch", str(marker)])
            eventually(marker.exists)
            eventually(lambda: node.status()["lease_end_boot_ms"] > before["lease_end_boot_ms"])
            eventually(lambda: is_connected(node))
            for name in ("pid", "incarnation"):
                assert node.status()[name] == before[name]
            if fault == "killed":
                eventually(lambda: all(client.complaints for client in clients))
        waiting.ends()
        for client in clients:
            client.wait()
            assert all(AWAY.search(line) for line in client.complaints), client.complaints
        assert [line.split()[-1] for line in following.lines()] == ["started", "enough"]
        work(stand, known, new)


def test_a_join_that_was_accepted_without_an_answer_is_repeated(
    stand: Stand, gateway: DistantGateway
) -> None:
    """Its token allows one node, and the control plane knows the node before the node does."""
    data, token = stand.stack.data_dir, token_of_one_node(stand)
    with a_newcomer(stand, "unanswered") as new, ExitStack() as ends:
        with paused(supervise.pid_of(data, "access")):
            sent = commands_to_access(stand)
            client = joining(new, gateway, token, stand.stack.ca if stand.stack.tls else None)
            ends.enter_context(client)
            eventually(lambda: commands_to_access(stand) > sent)
            with gateway.away("killed"):
                eventually(lambda: client.complaints)
        client.wait()
        work(stand, new)


def is_connected(node: JoinedNode) -> bool:
    status = node.status()
    return bool(status.get("executor")) and not status.get("problem")


def work(stand: Stand, *nodes: JoinedNode) -> None:
    """Start the agents, which register; keep the jobs of other tests off them."""
    for node in nodes:
        node.start()
    eventually(lambda: all(is_alive(stand, node.node_id) for node in nodes))
    for node in nodes:
        berth(stand, "cordon", node.node_id)
    eventually(lambda: all((node.row() or {})["cordoned"] for node in nodes))


def token_of_one_node(stand: Stand) -> str:
    body = {"pool": POOL, "approve": True, "max_uses": 1}
    status, receipt = stand.call("POST", "/v1/nodes/tokens", body)
    assert status == 202 and stand.answer(receipt["command_id"])["accepted"], receipt
    return str(receipt["token"])


def submit_without_gateway(stand: Stand, lane: int, command: list[str]) -> None:
    """Publish the command that a gateway would publish."""
    key = str(uuid4())
    spec = JobSpec.model_validate({"name": "job", "gang": {"workers": 1}, "command": command})
    job_id = derive_job_id("ada", POOL, key)
    body = SubmitJob(job_id=job_id, tenant="ada", pool=POOL, idempotency_key=key, spec=spec)
    stand.publish("commands", lane, a_command(body))


def commands_to_access(stand: Stand) -> int:
    """Return the number of records in the commands of access."""

    async def read_end() -> int:
        log = KafkaLog(stand.stack.connection("operator"), client="e2e")
        await log.start()
        try:
            return await log.end(TP("access.commands", 0))
        finally:
            await log.stop()

    return asyncio.run(read_end())


def test_a_killed_agent_stops_no_worker_and_the_next_one_takes_it_up(
    stand: Stand, node: JoinedNode, waiting: Waiting
) -> None:
    incarnation = node.status()["incarnation"]
    node.kill(signal.SIGKILL)
    assert waiting.is_alive()
    node.start()
    eventually(lambda: node.status().get("executor"))
    waiting.ends()
    assert node.status()["incarnation"] == incarnation


def test_a_worker_that_ends_without_an_agent_is_reported_by_the_next(
    stand: Stand, node: JoinedNode, waiting: Waiting
) -> None:
    node.kill(signal.SIGKILL)
    waiting.fifo.write_text("enough\n")
    eventually(lambda: not waiting.is_alive())
    assert stand.job(waiting.job_id)["phase"] == "running"  # type: ignore[index]
    node.start()
    row = stand.ended(waiting.job_id)
    assert (row["exit_code"], row["attempt"]) == (5, 1)


def test_an_agent_is_upgraded_while_a_job_runs(
    stand: Stand, node: JoinedNode, waiting: Waiting, tmp_path: Path
) -> None:
    shutil.copytree(AGENT / "berth_agent", tmp_path / "berth_agent")
    head = tmp_path / "berth_agent" / "__init__.py"
    before = node.status()["version"]
    head.write_text(head.read_text().replace(before, "99.0"))
    node.kill(signal.SIGTERM)
    node.code = tmp_path
    try:
        node.start()
        eventually(lambda: node.status()["version"] == "99.0" and node.status()["executor"])
        waiting.ends()
    finally:
        node.code = AGENT
    assert node.status()["version"] == "99.0"


def test_a_worker_that_is_cut_off_dies_at_its_deadline_before_its_job_runs_again(
    stand: Stand, tmp_path: Path
) -> None:
    log, end = tmp_path / "log", tmp_path / "end"
    with a_joined_node(stand, SHORT, "short-1") as cut:
        job_id = submit(
            stand,
            [sys.executable, "-c", TICKS, str(log), str(end)],
            SHORT,
            retry={"max_attempts": 3},
            grace_s=1,
        )
        eventually(log.exists)
        [allocation_id] = cut.workers_of(job_id)
        step = cut.step(allocation_id)
        with frozen(cut), a_joined_node(stand, SHORT, "short-2"):
            eventually(lambda: not processes.is_alive(step["pid"], step["ticks"]))
            assert cut.step(allocation_id)["failure"]["reason"] == "fenced"
            eventually(lambda: "2" in ticks(log))
            end.touch()
            row = stand.ended(job_id)
        assert (row["phase"], row["nodes"]) == ("succeeded", ["short-2"])
        eventually(lambda: (row := cut.row()) and row["alive"])
        assert cut.status()["generation"] == 2
    noted = ticks(log)
    assert max(noted["1"]) < min(noted["2"])


def test_a_training_is_preempted_by_rank_once_it_reports_a_checkpoint(
    stand: Stand, tmp_path: Path
) -> None:
    """It names no interval, so that nothing but its report lets rank stop it."""
    settings = [f"{name}={value}" for name, value in RANKED.items()]
    berth(stand, "pools", "set", LOCAL_POOL, *settings)
    reporter, saved = Path(__file__).parents[2] / "reporter", tmp_path / "saved"
    command = [sys.executable, "-c", SAVES, str(reporter), str(saved)]
    with a_joined_node(stand, LOCAL_POOL, "ranked-1", gpus=1):
        long = submit(stand, command, LOCAL_POOL, walltime_s=50_000)
        eventually(lambda: (row := stand.job(long)) and row["phase"] == "running")
        short = submit(stand, "exit 0", LOCAL_POOL, walltime_s=60)
        eventually(lambda: (row := stand.job(short)) and row["reason"])
        assert [row["preemptions"] for row in (stand.job(long),) if row] == [0]
        saved.touch()
        assert stand.ended(short)["phase"] == "succeeded"
        timeline = (stand.get(f"/v1/jobs/{long}/timeline") or {})["items"]
        [stop] = [event["data"] for event in timeline if event["type"] == "job.preempted.v1"]
        [began] = [event["at"] for event in timeline if event["type"] == "job.started.v1"][:1]
        [stopped] = [event["at"] for event in timeline if event["type"] == "job.preempted.v1"]
        assert (stop["reason"], stop["by_job_id"]) == ("outranked", short)
        assert stop["lost_work_s"] < (stopped - began) / 1000, "the checkpoint keeps the rest"
        eventually(lambda: (row := stand.job(long)) and row["checkpoint_step"] == 42)
        shown = dict(line.split(None, 1) for line in berth(stand, "show", long).splitlines())
        assert shown["checkpoint_step"] == "42" and shown["checkpointed_at"] != "-"
        berth(stand, "cancel", long)
        assert stand.ended(long)["phase"] == "cancelled"


@contextmanager
def a_small_disk(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=711", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def problems(node: JoinedNode) -> list[str]:
    row = node.row()
    return [problem["problem"] for problem in row["problems"]] if row else []


def test_a_node_with_a_full_disk_says_so_and_takes_no_job_until_it_has_space(stand: Stand) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    here = {"disk": "small"}
    with scratch_folder("disk") as folder, a_small_disk(folder), ExitStack() as stack:
        node = JoinedNode(stand, POOL, folder, "disk-1")
        stack.callback(node.close)
        node.settings |= {"reserve_mib": 1.0, "labels.disk": "small"}
        node.start()
        eventually(lambda: (row := node.row()) and row["alive"])
        assert stand.ended(submit(stand, "exit 0", node_selector=here))["phase"] == "succeeded"
        filler = folder / "filler"
        with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
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


def ticks(log: Path) -> dict[str, list[int]]:
    """Return the boot times, ns, that each attempt has noted."""
    noted: dict[str, list[int]] = {}
    for line in log.read_text().splitlines():
        attempt, _, boot_ns = line.partition(" ")
        noted.setdefault(attempt, []).append(int(boot_ns))
    return noted


class frozen:
    """The agent of a node stands still inside the block."""

    def __init__(self, node: NodeBench) -> None:
        assert node.process is not None
        self._process = node.process

    def __enter__(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def __exit__(self, *_: Any) -> None:
        self._process.send_signal(signal.SIGCONT)


def test_an_operator_changes_one_setting_of_a_pool(stand: Stand) -> None:
    assert berth(stand, "pools", "set", SHORT, "rank_ms=77") == "rank_ms: 1000 -> 77\n"
    settings = json.loads(berth(stand, "pools", "show", SHORT, "--json"))["settings"]
    kept = {name: settings[name] for name in SHORT_TERMS}
    assert (settings["rank_ms"], settings["backends"], kept) == (77, ["agent"], SHORT_TERMS)
    assert SHORT in berth(stand, "pools", "list")


def test_of_two_changes_of_one_version_of_a_pool_the_second_is_refused(stand: Stand) -> None:
    shown = json.loads(berth(stand, "pools", "show", SHORT, "--json"))
    settings = {name: value for name, value in shown["settings"].items() if name != "partition"}
    body = {**settings, "if_version": shown["version"]}
    assert stand.call("POST", "/v1/pools", {**body, "round_ms": 101})[0] == 202
    status, problem = stand.call("POST", "/v1/pools", {**body, "round_ms": 102})
    assert (status, problem["reason"]) == (409, "version_conflict")
    berth(stand, "pools", "set", SHORT, "round_ms=null")


def test_a_pool_takes_jobs_of_the_tenants_that_it_names(stand: Stand) -> None:
    assert berth(stand, "pools", "set", SHORT, "tenants=bob") == "tenants: - -> bob\n"
    job = {"pool": SHORT, "spec": {"name": "j", "command": ["true"]}}
    _, ticket = stand.call("POST", "/v1/jobs", job, caller="ada")
    answer = stand.answer(ticket["command_id"])
    assert (answer["accepted"], answer["reason"]) == (False, "tenant_not_allowed")
    assert "tenant 'ada' is not in the pool's setting `tenants`" in answer["detail"]
    assert berth(stand, "pools", "set", SHORT, "tenants=null") == "tenants: bob -> -\n"


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


def is_alive(stand: Stand, node_id: str) -> bool:
    page = stand.get("/v1/nodes?limit=1000")
    rows = page["items"] if page else []
    return any(row["alive"] for row in rows if row["node_id"] == node_id)


def test_the_ledgers_are_sound(stand: Stand) -> None:
    assert stand.verify().violations == []
