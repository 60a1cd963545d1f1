"""Three hosts: a control plane and two nodes, each in a network namespace of its own."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.chaos.nodes.ticks import (
    WORKER,
    find_double_attempts,
    find_double_uses,
    read_uses,
)
from berth_agent.linux import processes
from cli.commands.jobs import ENDS
from infra.broker import kafka
from infra.drills import hosts
from infra.drills.hosts import Direction, Host, Network
from tests.operations.machines_page import PAGE, run_blocks
from tests.pages import PAGE_S, blocks, environment, shell
from tests.patience import PATIENCE_S

CONTROL, NODES = "control", ("one", "two")
SECRET = "s" * 43
API, AGENTS = 8443, 8444
AGENT = Path(__file__).parents[2] / "agent"
QUICK = {"heartbeat_s": 1, "request_timeout_s": 2, "reconnect_s": 2, "suspect_after_s": 6}
SHORT = "short"
"""Pool of a short lease."""
SHORT_LEASE = {"stop_after_s": 10, "kill_s": 3, "clock_rate_bound": 1, "slack_s": 1}
AS_ROOT = ("--uid-first", "0")
UNTRUSTED = 60
"""Exit code of curl for a certificate that it does not accept."""

pytestmark = [
    pytest.mark.parts,
    pytest.mark.stack,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]


@dataclass(frozen=True, slots=True)
class Site:
    """The network, the data folder of the control plane, and what was copied to the nodes."""

    network: Network
    home: Path
    ca: Path
    token: str

    @property
    def control(self) -> Host:
        return self.network.hosts[CONTROL]

    def post(self, node: str, url: str, body: object, *options: str) -> tuple[int, str]:
        """Send JSON from a node; return the status, 0 without an answer, and the body."""
        done = self.curl(node, "-w", "\n%{http_code}", "-d", json.dumps(body), *options, url)
        answer, _, status = done.stdout.rpartition("\n")
        return int(status or 0), answer

    def curl(self, node: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run curl on a node with the copied CA."""
        json_body = ("-H", "Content-Type: application/json", "--max-time", "30")
        return self.network.hosts[node].run(
            ["curl", "-sS", "--cacert", str(self.ca), *json_body, *options]
        )

    def berth(self, *words: str) -> Any:
        """Run the command line on the control plane; return its JSON."""
        done = self.control.run(["berth", *words], environment(self.home))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def new_token(self, pool: str) -> str:
        """Return a join token whose nodes need no approval."""
        words = ("nodes", "token", "--pool", pool, "--ttl", "1h", "--approve", "--json")
        return str(self.berth(*words)["token"])

    def configure(self, settings: Mapping[str, object]) -> None:
        """Replace the settings of a pool, as the operator."""
        key = (self.home / "operator.key").read_text().strip()
        header = ("-H", f"Authorization: Bearer {key}")
        status, answer = self.post("one", self.url("/v1/pools"), settings, *header)
        assert status == 202, answer

    def state(self, node: str, pool: str = "gpu") -> str:
        """Return the state of the agent of a node, empty before it has joined."""
        rows = self.berth("nodes", "--pool", pool, "--json")
        return next((row["state"] for row in rows if row["node_id"] == f"{pool}-{node}"), "")

    def job(self, job_id: str) -> dict[str, Any]:
        """Return a job as the API shows it."""
        shown: dict[str, Any] = self.berth("show", job_id, "--json")
        return shown

    def wait_until(self, is_reached: Callable[[], bool]) -> None:
        ends = time.monotonic() + PATIENCE_S
        while not is_reached():
            assert time.monotonic() < ends, self.berth("nodes", "--json")
            time.sleep(0.5)

    def url(self, path: str, port: int = API) -> str:
        return f"https://{self.control.address}:{port}{path}"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Start the control plane by the commands of the page."""
    if reason := hosts.missing():
        pytest.skip(reason)
    prefix = "berth-machines-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as root,
        hosts.network((CONTROL, *NODES)) as network,
    ):
        Path(root).chmod(0o755)  # Workers have users of their own.
        home = Path(root) / "data"
        control = network.hosts[CONTROL]
        try:
            text = run_blocks("", home, {"CONTROL": control.address}, control)
            ca = Path(root) / "ca.crt"
            ca.write_bytes((home / "certificates" / "ca.crt").read_bytes())
            yield Site(network, home, ca, text.splitlines()[-1])
        finally:
            control.run(["berth", "down", "--data", str(home)], environment(home))


@pytest.mark.parametrize("node", NODES)
def test_the_checks_of_the_page_succeed_on_a_node(site: Site, node: str) -> None:
    host = site.network.hosts[node]
    printed = run_blocks("on the node", site.home, {"CONTROL": site.control.address}, host)
    assert printed.endswith("401\n")


@pytest.mark.parametrize("port", [API, AGENTS])
def test_without_the_ca_a_node_does_not_trust_the_control_plane(site: Site, port: int) -> None:
    done = site.network.hosts["one"].run(["curl", "-sS", site.url("/health", port)])
    assert done.returncode == UNTRUSTED and "unable to get local issuer" in done.stderr


def test_another_name_than_that_of_listen_is_not_trusted(site: Site) -> None:
    resolve = f"other.example:{API}:{site.control.address}"
    done = site.curl("one", "--resolve", resolve, f"https://other.example:{API}/health")
    assert done.returncode == UNTRUSTED and "no alternative" in done.stderr


def test_plain_http_is_not_answered(site: Site) -> None:
    done = site.curl("one", site.url("/health").replace("https:", "http:"))
    assert done.returncode != 0


def test_a_wrong_token_is_refused(site: Site) -> None:
    status, answer = site.post("one", site.url("/agent/v1/join"), joining("one", "wrong.token"))
    assert status == 401, answer


@pytest.mark.parametrize("node", NODES)
def test_a_node_joins_and_its_executor_knows_its_credential(site: Site, node: str) -> None:
    status, answer = site.post(node, site.url("/agent/v1/join"), joining(node, site.token))
    assert status == 200, answer
    joined = json.loads(answer)
    assert (joined["pool"], joined["approved"]) == ("gpu", True)
    (executor,) = joined["executors"]
    assert executor == site.url("", AGENTS)
    hello = f"{executor}/agent/v1/hello"
    assert site.post(node, hello, {})[0] == 401
    status, answer = site.post(node, hello, {}, "-H", f"Authorization: Bearer {node}.{SECRET}")
    assert status == 400 and json.loads(answer)["reason"] == "malformed", answer


def test_only_two_ports_are_reached_from_a_node(site: Site) -> None:
    shown = site.control.run(["ss", "-Hltn"]).stdout
    local = [line.split()[3] for line in shown.splitlines()]
    loopback = ("127.", "[::1]", "[::ffff:127.")
    beyond = {address for address in local if not address.startswith(loopback)}
    assert len(local) > len(beyond)
    assert beyond == {f"{site.control.address}:{port}" for port in (API, AGENTS)}


def test_a_node_without_its_link_reaches_nothing_until_the_link_is_up(site: Site) -> None:
    site.network.cut("two")
    health = site.url("/health")
    done = site.curl("two", "--connect-timeout", "2", health)
    assert done.returncode != 0
    assert site.curl("one", "-f", health).returncode == 0
    site.network.restore("two")
    assert site.curl("two", "-f", "--retry", "10", "--retry-all-errors", health).returncode == 0


def joining(node: str, token: str) -> dict[str, str]:
    """Return the body of a join of this node."""
    secret = hashlib.sha256(SECRET.encode()).hexdigest()
    return {"node_id": node, "token": token, "credential_sha256": secret}


@pytest.fixture(scope="module")
def agents(site: Site) -> Iterator[Site]:
    """Run an agent on each node; the pool notices a silent one soon."""
    site.configure({"pool": "gpu", "backends": ["agent"], **QUICK})
    site.berth("tenants", "add", "ada", "--pool", "gpu", "--json")
    with ExitStack() as running:
        for node in NODES:
            running.enter_context(agent(site, node))
        site.wait_until(lambda: {site.state(node) for node in NODES} == {"joined"})
        yield site


@contextmanager
def agent(site: Site, node: str, pool: str = "gpu", *flags: str) -> Iterator[Path]:
    """Join the node by the command of the page, and run its agent; yield the agent's folder."""
    host, folder = site.network.hosts[node], site.home.parent / f"{pool}-{node}"
    config = site.home.parent / f"{folder.name}.toml"
    config.write_text("private_tmp = false\n")  # Jobs meet the test below the machine's /tmp.
    command = [sys.executable, "-m", "berth_agent", "--config", str(config)]
    env = environment(site.home) | {"PYTHONPATH": str(AGENT)}
    state = ("--state", str(folder / "state"))
    token = site.home.parent / f"token-{node}"
    token.write_text(site.token if pool == "gpu" else site.new_token(pool))
    words = ("join", site.url(""), "--token-file", str(token), "--ca", str(site.ca))
    done = host.run([*command, *words, "--node-id", folder.name, *state], env)
    assert done.returncode == 0, done.stderr
    settings = ("--run", str(folder / "run"), "--gpus", "1", "--gpu-type", "a100", *flags)
    with (folder / "agent.log").open("wb") as log:
        running = subprocess.Popen(
            host.command([*command, "run", *state, *settings]), env=env, stdout=log, stderr=log
        )
        try:
            yield folder
        finally:
            running.terminate()
            running.wait(PATIENCE_S)


def test_after_a_cut_beyond_the_lease_a_job_runs_again_when_its_worker_has_ended(
    site: Site,
) -> None:
    """Whichever direction is cut: what reaches one side alone must not keep a worker alive."""
    ticks = site.home.parent / "ticks"
    ticks.mkdir()
    ticks.chmod(0o777)
    site.configure({"pool": SHORT, "backends": ["agent"], **QUICK, **SHORT_LEASE})
    site.berth("tenants", "add", "bob", "--pool", SHORT, "--json")
    # One user, who may read the interpreter of the tests.
    with agent(site, "one", SHORT, *AS_ROOT), agent(site, "two", SHORT, *AS_ROOT) as folder:
        site.wait_until(lambda: {site.state(node, SHORT) for node in NODES} == {"joined"})
        words = ("--tenant", "bob", "--pool", SHORT, "--workers", "2", "--gpus", "1", "--json")
        worker = (sys.executable, "-ISc", WORKER, str(ticks), "1e6")
        job = str(site.berth("submit", *words, "--", *worker)["job_id"])

        def are_ticking(attempt: int) -> bool:
            return sum(use.run == (job, attempt) for use in read_uses(ticks)) == len(NODES)

        for attempt, (cut, restore) in enumerate(cuts(site.network), start=1):
            site.wait_until(lambda present=attempt: are_ticking(present))  # type: ignore[misc]
            (noted,) = folder.glob("state/allocations/*/state.json")
            step = json.loads(noted.read_text())
            cut()
            site.wait_until(lambda: site.state("two", SHORT) == "lost")
            assert not processes.is_alive(step["pid"], step["ticks"])
            restore()
        site.wait_until(lambda: are_ticking(attempt + 1))
        Path(f"{ticks}.end").touch()
        site.wait_until(lambda: site.job(job)["phase"] in ENDS)
        assert site.job(job)["phase"] == "succeeded"
    uses = read_uses(ticks)
    assert find_double_uses(uses) == find_double_attempts(uses) == []


def cuts(network: Network) -> list[tuple[Callable[[], None], Callable[[], None]]]:
    """Return what cuts the second node off, and what undoes it: both directions, then each."""
    pairs: list[tuple[Callable[[], None], Callable[[], None]]] = [
        (partial(network.cut, "two"), partial(network.restore, "two"))
    ]
    directions: tuple[Direction, ...] = ("to_host", "from_host")
    for direction in directions:
        pairs.append(
            (
                partial(network.lose, "two", direction),
                partial(network.lose_no_more, "two", direction),
            )
        )
    return pairs


def test_a_job_on_two_nodes_outlives_a_cut_that_is_shorter_than_its_lease(agents: Site) -> None:
    go = agents.home.parent / "go"
    script = f"until [ -e {go} ]; do sleep 0.1; done; echo rank $BERTH_RANK of $BERTH_WORLD_SIZE"
    words = ("--tenant", "ada", "--pool", "gpu", "--workers", "2", "--gpus", "1", "--json")
    job = str(agents.berth("submit", *words, "--", "sh", "-c", script)["job_id"])
    agents.wait_until(lambda: agents.job(job)["phase"] == "running")
    agents.network.cut("two")
    agents.wait_until(lambda: agents.state("two") == "suspected")
    agents.network.restore("two")
    agents.wait_until(lambda: agents.state("two") == "joined")
    go.touch()
    agents.wait_until(lambda: agents.job(job)["phase"] in ENDS)
    ended = agents.job(job)
    assert (ended["phase"], ended["attempt"]) == ("succeeded", 1), ended


def test_after_a_restore_nodes_work_again_and_a_revocation_is_back(agents: Site) -> None:
    """The page of backups, with agents that keep their folders and obeyed what is not restored."""
    script = blocks((PAGE.parent / "backup.md").read_text())
    run_script(agents, script[0])
    gang = ("--tenant", "ada", "--pool", "gpu", "--workers", "2", "--gpus", "1", "--json")
    later = str(agents.berth("submit", *gang, "--", "sleep", "100000")["job_id"])
    agents.wait_until(lambda: agents.job(later)["phase"] == "running")
    agents.berth("nodes", "revoke", "gpu-two", "--json")
    run_script(agents, "\n".join(script[1:]))
    run_script(agents, 'berth down && berth up --broker kafka --tls --listen "$CONTROL" --detach')
    enrolled = {
        row["node_id"]: row["state"]
        for row in agents.berth("nodes", "list", "--enrolled", "--json")
    }
    assert {enrolled[f"gpu-{node}"] for node in NODES} == {"approved"}
    agents.wait_until(lambda: {agents.state(node) for node in NODES} == {"joined"})
    job = str(agents.berth("submit", *gang, "--", "true")["job_id"])
    agents.wait_until(lambda: agents.job(job)["phase"] in ENDS)
    assert agents.job(job)["phase"] == "succeeded"
    folders = [agents.home.parent / f"gpu-{node}" / "state" / "allocations" for node in NODES]
    left = [path.name for folder in folders for path in folder.iterdir()]
    assert left == [], "what ran without the log's knowledge is ended"


def run_script(site: Site, script: str) -> None:
    """Run commands of an operator on the control plane."""
    backup = {"BACKUP": str(site.home.parent / "backup"), "CONTROL": site.control.address}
    done = site.control.run(shell(script), environment(site.home) | backup, timeout_s=PAGE_S)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
