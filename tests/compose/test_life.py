"""The whole of Berth in containers: jobs by REST and by event, traces, metrics, deaths."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from infra.compose import project as compose_project
from infra.standins.build import label
from infra.supervisor.stack import SERVICES
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.identity import derive_job_id
from shared.ledger.errors import Forbidden
from shared.ledger.partition import TP
from tests.compose.project import WELL_S, Project, cli, docker
from tests.e2e.stand import eventually, trust
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.compose, pytest.mark.parts]
START = {"submit", "admit", "rank", "place", "start"}
METRICS = (
    "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9100/metrics').read().decode())"
)
NAMES = tuple(service.name for service in SERVICES)
services = pytest.mark.parametrize("service", NAMES)
crashes = pytest.mark.parametrize("service", ("placement", "gateway", "projector"))


def by_event(project: Project) -> str:
    """Submit a job by event; return its id."""
    key = str(uuid4())
    project.publish(key)
    return derive_job_id(project.tenant, "virtual", key)


def get(url: str) -> Any:
    """Return the JSON at the URL; None for an HTTP error."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        error.close()
        return None


def test_a_job_by_rest_is_placed_on_the_virtual_pool_and_succeeds(project: Project) -> None:
    job_id = project.submit(gang={"workers": 2, "gpus_per_worker": 4})
    row = project.stand.ended(job_id)
    assert (row["phase"], row["pool"], row["tenant"]) == ("succeeded", "virtual", project.tenant)
    timeline = project.stand.get(f"/v1/jobs/{job_id}/timeline")
    assert timeline and {"job.placed.v1", "job.succeeded.v1"} <= {
        item["type"] for item in timeline["items"]
    }


def test_a_job_by_event_is_placed_and_succeeds(project: Project) -> None:
    assert project.stand.ended(by_event(project), WELL_S)["phase"] == "succeeded"


def test_a_real_process_runs_in_the_local_pools_container(project: Project) -> None:
    script = "import os; print('user of a tenant', os.getuid() >= 70000)"
    status, ticket = project.stand.call(
        "POST",
        "/v1/jobs",
        {"pool": "local", "spec": {"name": "real", "command": ["python", "-c", script]}},
        caller="tenant",
    )
    assert status == 202, ticket
    assert project.stand.ended(ticket["job_id"], WELL_S)["phase"] == "succeeded"

    def has_printed() -> bool:
        lines = cli("logs", ticket["job_id"])["lines"]
        return any("user of a tenant True" in line["text"] for line in lines)

    # The end of a worker overtakes its last lines.
    eventually(has_printed)


def test_a_jobs_start_is_one_trace_in_the_api_and_in_the_tracing_ui(project: Project) -> None:
    job_id = project.submit()
    row = project.stand.ended(job_id)
    trace = eventually(
        lambda: (
            page
            if (page := project.stand.get(f"/v1/jobs/{job_id}/trace"))
            and {span["name"] for span in page["spans"]} >= START
            else None
        )
    )
    assert row["trace_id"] in {span["trace_id"] for span in trace["spans"]}
    assert eventually(lambda: shown(row["trace_id"]) >= START)


def shown(trace_id: str) -> set[str]:
    """Names of the spans in Jaeger, or in the Zipkin that stands in for it."""
    if label(compose_project.variables()["JAEGER_IMAGE"]):
        spans = get(f"{compose_project.traces_url()}/api/v2/trace/{trace_id}") or []
        return {span["name"] for span in spans}
    traces = get(f"{compose_project.traces_url()}/api/traces/{trace_id}") or {"data": []}
    return {span["operationName"] for trace in traces["data"] for span in trace["spans"]}


@services
def test_a_service_answers_prometheus(project: Project, service: str) -> None:
    assert "berth_info" in project.python(service, METRICS)


def test_the_api_has_its_pages(project: Project) -> None:
    stack = project.stand.stack
    trust = ssl.create_default_context(cafile=stack.ca)
    for path in ("/", "/docs", "/metrics", "/health"):
        with urllib.request.urlopen(
            stack.gateway + path, timeout=PATIENCE_S, context=trust
        ) as answer:
            assert answer.status == 200


def test_a_client_without_the_ca_or_without_tls_is_not_served(project: Project) -> None:
    stack = project.stand.stack
    for address in (f"{stack.gateway}/health", f"{stack.llm}/v1/models"):
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(address, timeout=PATIENCE_S)
        with pytest.raises((OSError, HTTPException)) as met:
            urllib.request.urlopen(address.replace("https:", "http:"), timeout=PATIENCE_S)
        assert not isinstance(met.value, urllib.error.HTTPError)


def test_the_llm_proxy_serves_tls(project: Project) -> None:
    stack = project.stand.stack
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{stack.llm}/v1/models", timeout=PATIENCE_S, context=trust(stack))


async def test_postgres_accepts_tls_only(project: Project) -> None:
    dsn = project.stand.stack.postgres
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match="no pg_hba.conf"):
        await asyncpg.connect(dsn.replace("verify-full", "disable"))
    conn = await asyncpg.connect(dsn)
    assert await conn.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    await conn.close()


def test_a_user_of_kafka_may_do_what_the_table_says_and_nothing_else(project: Project) -> None:
    async def refused(user: str, topic: str) -> bool:
        log = KafkaLog(project.stand.stack.connection(user), client="test")
        await log.start()
        try:
            await log.append(TP(topic, 15), b"{}")
        except Forbidden:
            return True
        finally:
            await log.stop()
        return False

    for user, topic in (("verify", "placement"), ("operator", "admission"), ("admin", "commands")):
        assert asyncio.run(refused(user, topic)), (user, topic)


def test_prometheus_reaches_every_service_and_no_rule_is_broken(project: Project) -> None:
    url = f"http://127.0.0.1:{compose_project.variables()['PROMETHEUS_PORT']}/api/v1"

    def all_up() -> bool:
        targets = get(f"{url}/targets")["data"]["activeTargets"]
        up = {target["labels"]["service"] for target in targets if target["health"] == "up"}
        return up == set(NAMES)

    eventually(all_up, WELL_S)
    groups = get(f"{url}/rules")["data"]["groups"]
    assert [rule["name"] for group in groups for rule in group["rules"]]
    assert all(rule["health"] == "ok" for group in groups for rule in group["rules"])


def test_grafana_has_the_dashboards_and_their_data(project: Project) -> None:
    url = f"http://127.0.0.1:{compose_project.variables()['GRAFANA_PORT']}"
    assert get(f"{url}/api/health")["database"] == "ok"
    if not label(compose_project.variables()["GRAFANA_IMAGE"]):
        return
    boards = {
        path.stem for path in (compose_project.ROOT / "infra/grafana/dashboards").glob("*.json")
    }
    assert {board["uid"] for board in get(f"{url}/api/search")} == boards
    assert get(f"{url}/api/failing") == []


def test_the_load_profile_submits_a_workload(project: Project) -> None:
    """Its end is not awaited: some of its jobs run for an hour of the cluster."""
    ran = subprocess.run(
        [
            *compose_project.compose_command(),
            "--profile",
            "load",
            "run",
            "--rm",
            "load",
            "python",
            "-m",
            "cli",
            "replay",
            "synthetic",
            "--jobs",
            "20",
            "--speed",
            "100000",
            "--data",
            "/inside",
            "--json",
        ],
        cwd=compose_project.ROOT,
        capture_output=True,
        text=True,
        timeout=WELL_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert json.loads(ran.stdout.strip().splitlines()[-1])["jobs"]["submitted"] == 20


@crashes
def test_a_service_that_crashes_comes_back_and_nothing_is_lost(
    project: Project, service: str
) -> None:
    before = [project.submit(simulated={"duration_s": 2}) for _ in range(5)]
    project.crash(service)
    behind = by_event(project)
    project.well(service, "gateway")
    for job_id in (*before, behind):
        assert project.stand.ended(job_id, WELL_S)["phase"] == "succeeded"


@pytest.mark.parametrize("service", ("broker", "postgres", "admission"))
def test_a_container_killed_by_hand_goes_on_where_it_was_when_started_again(
    project: Project, service: str
) -> None:
    """Docker does not restart a container after `docker kill`."""
    before = project.submit(simulated={"duration_s": 1})
    container = project.named(service).id
    docker("kill", container)
    docker("start", container)
    project.well()
    assert project.stand.ended(before, WELL_S)["phase"] == "succeeded"
    assert project.stand.ended(by_event(project), WELL_S)["phase"] == "succeeded"


def test_a_service_that_must_not_go_on_stays_down_and_is_not_started_again(
    project: Project,
) -> None:
    """A container of the same image and policy, as no ledger of the project shall be broken."""
    config = project.inspect("access")["Config"]
    entry = [*config["Entrypoint"][1:], "python", "-c", "raise SystemExit(71)"]
    container = docker(
        "run",
        "--detach",
        "--init",
        "--restart",
        "unless-stopped",
        "--entrypoint",
        config["Entrypoint"][0],
        config["Image"],
        *entry,
    ).strip()
    try:
        eventually(lambda: "stopped: see the error above" in logs(container))
        (state,) = json.loads(docker("inspect", container))
        assert (state["State"]["Status"], state["RestartCount"]) == ("running", 0)
        docker("stop", container)
    finally:
        docker("rm", "--force", "--volumes", container)


def logs(container: str) -> str:
    """Return its standard output and standard error."""
    output = subprocess.run(
        ["docker", "logs", container], capture_output=True, text=True, check=True
    )
    return output.stdout + output.stderr


def test_verify_has_no_violations_after_all_of_them(project: Project) -> None:
    result = cli("verify")
    assert result["violations"] == []
    assert result["counts"]
