"""Three hosts: a control plane and two nodes, each in a network namespace of its own."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.broker import kafka
from tests.operations import hosts
from tests.operations.hosts import Host, Network
from tests.operations.machines_page import environment, run_blocks

CONTROL, NODES = "control", ("one", "two")
SECRET = "s" * 43
API, AGENTS = 8443, 8444
UNTRUSTED, NO_NAME = 60, 60
"""Exit codes of curl for a certificate that it does not accept."""

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
    assert done.returncode == NO_NAME and "no alternative" in done.stderr


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
