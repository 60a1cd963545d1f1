"""A running stack as its operators see it: slow workers, traces, metrics, LLM requests."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import yaml

from infra.grafana.boards.overview import OVERVIEW
from infra.grafana.build import BOARDS
from infra.machine.process import free_ports, spawn
from infra.prometheus.__main__ import local
from infra.supervisor.stack import SERVICES
from shared.bus.logs.kafka import KafkaLog
from shared.projections.database import connect
from shared.projections.rebuild import rebuild
from shared.telemetry.scrape import scrape_all
from tests.conftest import SLOW_NODE
from tests.e2e.engine import an_engine
from tests.e2e.stand import Json, Stand, eventually, trust
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.stack
START = ("submit", "admit", "rank", "place", "start")
TRACED_JOBS = int(os.environ.get("BERTH_TRACED_JOBS", "60"))


@pytest.fixture(scope="module")
def stand(shared_stand: Stand) -> Stand:
    return shared_stand


def fetch_rows(stand: Stand, query: str) -> list[dict[str, Any]]:
    async def fetch() -> list[asyncpg.Record]:
        conn = await connect(stand.stack.postgres)
        try:
            return list(await conn.fetch(query))
        finally:
            await conn.close()

    return [dict(row) for row in asyncio.run(fetch())]


def submit_job(stand: Stand, **spec: object) -> str:
    status, ticket = stand.call("POST", "/v1/jobs", {"name": "job", **spec}, caller="ada")
    assert status == 202, ticket
    return str(ticket["job_id"])


def test_a_slow_worker_of_a_gang_is_suspected_and_cleared_when_its_job_ends(stand: Stand) -> None:
    job_id = submit_job(
        stand,
        gang={"workers": 4, "gpus_per_worker": 8},
        simulated={"duration_s": 600, "iteration_s": 0.1},
    )
    faults = eventually(lambda: fetch_rows(stand, "SELECT * FROM fault"))
    assert [fault["node_id"] for fault in faults] == [SLOW_NODE]
    assert faults[0]["job_id"] == job_id and faults[0]["slowdown"] > 1.5
    assert fetch_rows(stand, "SELECT * FROM fault WHERE state = 'cleared'") == []
    assert stand.call("POST", f"/v1/jobs/{job_id}/cancel", {}, caller="ada")[0] == 202
    assert stand.ended(job_id)["phase"] == "cancelled"
    eventually(lambda: fetch_rows(stand, "SELECT * FROM fault WHERE state = 'cleared'"))


def health(stand: Stand, node_id: str) -> float:
    nodes = stand.get("/v1/nodes?limit=1000")
    assert nodes is not None
    return float(next(n["health"] for n in nodes["items"] if n["node_id"] == node_id))


def test_its_node_is_used_last_until_an_operator_reports_a_false_alarm(stand: Stand) -> None:
    """Run after the test above: the end of the slow job alone does not restore the node."""
    assert health(stand, SLOW_NODE) < 0.7
    job_id = submit_job(stand, gang={"gpus_per_worker": 8}, simulated={"duration_s": 0.05})
    assert stand.ended(job_id)["nodes"] == ["a100-1"]
    faults = stand.get("/v1/faults?state=cleared")
    path = f"/v1/faults/{faults['items'][0]['fault_id']}"  # type: ignore[index]
    assert stand.call("POST", f"{path}/false-alarm", {}, caller="ada")[0] == 403
    status, ticket = stand.call("POST", f"{path}/false-alarm", {"reason": "a fan"})
    assert status == 202 and stand.answer(ticket["command_id"])["accepted"]
    eventually(lambda: health(stand, SLOW_NODE) == 1.0)
    _, ticket = stand.call("POST", f"{path}/dismiss", {})
    assert stand.answer(ticket["command_id"])["reason"] == "already_closed"


def test_a_job_on_a_drained_node_migrates_to_another(stand: Stand) -> None:
    for duration_s in (5, 30, 120):  # on a busy machine the drain may come after the end
        job_id, node_id, ended = run_on_a_drained_node(stand, duration_s)
        if ended["moves"]:
            break
    assert (ended["phase"], ended["moves"], ended["preemptions"]) == ("succeeded", 1, 0)
    assert ended["nodes"] != [node_id]
    why = stand.get(f"/v1/jobs/{job_id}/why")
    assert why and why["placing"]["policy"] == "kept"
    assert "job.migrated.v1" in [item["type"] for item in why["items"]]


def run_on_a_drained_node(stand: Stand, duration_s: int) -> tuple[str, str, Json]:
    """Drain the node of a new job; return the job's id, the node and the job as it ended."""
    simulated = {"duration_s": duration_s}
    job_id = submit_job(
        stand, gang={"gpus_per_worker": 8}, checkpoint_interval_s=1, simulated=simulated
    )
    (node_id,) = stand.until(job_id, "running")["nodes"]
    _, ticket = stand.call("POST", f"/v1/nodes/{node_id}/drain", {"reason": "disk"})
    assert stand.answer(ticket["command_id"])["accepted"]
    ended = stand.ended(job_id)
    _, ticket = stand.call("POST", f"/v1/nodes/{node_id}/uncordon", {})
    assert stand.answer(ticket["command_id"])["accepted"]
    return job_id, node_id, ended


def test_a_jobs_start_is_one_trace_of_five_services(stand: Stand) -> None:
    job_id = submit_job(stand, simulated={"duration_s": 0.05})
    stand.ended(job_id)

    def whole() -> list[dict[str, Any]] | None:
        trace = stand.get(f"/v1/jobs/{job_id}/trace")
        spans = trace["spans"] if trace else []
        return spans if {span["name"] for span in spans} >= set(START) else None

    spans = [span for span in eventually(whole) if span["name"] in START]
    assert len({span["trace_id"] for span in spans}) == 1
    assert {span["service"] for span in spans} >= {"gateway", "admission", "priority", "placement"}


def test_every_placed_job_of_many_has_all_five_spans(stand: Stand) -> None:
    """Goal G19, at a sample of 100 %: nothing is dropped as long as the queues are not full."""
    job_ids = [submit_job(stand, simulated={"duration_s": 0.01}) for _ in range(TRACED_JOBS)]
    for job_id in job_ids:
        assert stand.ended(job_id)["phase"] == "succeeded"
    missing = untraced(stand, job_ids)
    assert len(missing) <= TRACED_JOBS / 1000, missing
    ports = metrics_ports(stand)
    lost = {
        service.name: service.total("berth_spans_dropped_total") for service in scrape_all(ports)
    }
    assert not any(lost.values()), lost


def metrics_ports(stand: Stand) -> dict[str, str]:
    ports = stand.stack.ports
    return {service.name: f"127.0.0.1:{ports[service.name]['metrics']}" for service in SERVICES}


def started(stand: Stand, job_id: str) -> bool:
    trace = stand.get(f"/v1/jobs/{job_id}/trace")
    return {span["name"] for span in trace["spans"]} >= set(START) if trace else False


def untraced(stand: Stand, job_ids: list[str]) -> list[str]:
    """Return the jobs that lack spans once services have had the time to send them."""
    ends = time.monotonic() + PATIENCE_S
    while job_ids := [job_id for job_id in job_ids if not started(stand, job_id)]:
        if time.monotonic() > ends:
            break
        time.sleep(0.5)
    return job_ids


def test_every_service_answers_prometheus(stand: Stand) -> None:
    for service in SERVICES:
        port = stand.stack.ports[service.name]["metrics"]
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S
        ) as answer:
            assert b"berth_info" in answer.read(), service.name


def test_every_service_measures_its_lag(stand: Stand) -> None:
    ports = metrics_ports(stand)

    def silent() -> list[str]:
        measures = ("berth_consumer_lag_records", "berth_behind_seconds")
        return [
            service.name for service in scrape_all(ports) if not any(map(service.series, measures))
        ]

    eventually(lambda: not silent())


@pytest.fixture
def prometheus(stand: Stand, tmp_path: Path) -> Iterator[str]:
    """URL of the API of a real Prometheus that scrapes this stack."""
    if not shutil.which("prometheus"):
        pytest.skip("Prometheus is not installed")
    (port,) = free_ports(1)
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump(local(stand.stack, every_s=1)))
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    running = spawn("prometheus", command, tmp_path / "log")
    try:
        running.wait_ready(lambda: is_ready(port), PATIENCE_S)
        yield f"http://127.0.0.1:{port}/api/v1"
    finally:
        running.stop()


def is_ready(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=2).close()
    except OSError:
        return False
    return True


def query_api(api: str, path: str, **query: str) -> dict[str, Any]:
    with urllib.request.urlopen(
        f"{api}/{path}?{urllib.parse.urlencode(query)}", timeout=PATIENCE_S
    ) as answer:
        data: dict[str, Any] = json.loads(answer.read())["data"]
        return data


def values(api: str, expression: str) -> list[float]:
    series = query_api(api, "query", query=expression)["result"]
    return [float(one["value"][1]) for one in series]


def test_prometheus_answers_every_dashboard_and_no_alert_fires(prometheus: str) -> None:
    """A wrong expression of a panel or a rule is an HTTP error here."""
    eventually(lambda: values(prometheus, 'sum(up{job="berth"})') == [len(SERVICES)])
    expressions = {
        q.expression for board in BOARDS for panel in board.panels for q in panel.queries
    }
    results = {text: values(prometheus, plain(text)) for text in expressions}
    stats = [
        q.expression for panel in OVERVIEW.panels for q in panel.queries if panel.kind == "stat"
    ]
    assert all(results[text] for text in stats if "dead_letters" not in text)
    eventually(lambda: rules(prometheus) == {"ok"})
    alerts = query_api(prometheus, "alerts")["alerts"]
    assert [alert["labels"] for alert in alerts if alert["state"] == "firing"] == []


def rules(api: str) -> set[str]:
    """Return the health of all rules: `unknown` until evaluated, `err` for a rule that fails."""
    groups = query_api(api, "rules")["groups"]
    return {rule["health"] for group in groups for rule in group["rules"]}


def plain(expression: str) -> str:
    for name, value in (("$__rate_interval", "5s"), ("$pool", ".*"), ("$endpoint", ".*")):
        expression = expression.replace(name, value)
    return expression.replace("$service", ".*")


@pytest.fixture(scope="module")
def endpoint(stand: Stand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    model = "org/Chat-7B"
    with an_engine(model, tmp_path_factory.mktemp("engine") / "log") as url:
        body = {"endpoint": model, "upstreams": [{"name": "e1", "url": url}]}
        status, ticket = stand.call("POST", "/v1/endpoints", body)
        assert status == 202 and stand.answer(ticket["command_id"])["accepted"]
        yield model


def ask_llm(stand: Stand, model: str, caller: str) -> tuple[Any, dict[str, Any]] | None:
    """Return headers and answer of a chat request; None while the endpoint is not served yet."""
    body = {"model": model, "max_tokens": 16, "messages": [{"role": "user", "content": "hello"}]}
    request = urllib.request.Request(
        f"{stand.stack.llm}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {stand.keys[caller]}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(
            request, timeout=PATIENCE_S, context=trust(stand.stack)
        ) as answer:
            return answer.headers, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        assert error.code in (404, 503), error.read()
        return None


def test_an_llm_request_is_served_and_charged_to_its_tenant(stand: Stand, endpoint: str) -> None:
    headers, completion = eventually(lambda: ask_llm(stand, endpoint, "ada"))
    usage = completion["usage"]
    request_id = headers["x-request-id"]
    done = "SELECT * FROM llm_request WHERE state = 'finished'"
    rows = eventually(lambda: fetch_rows(stand, done))
    (served,) = (row for row in rows if row["request_id"] == request_id)
    assert served["tenant"] == "ada"
    assert served["output_tokens"] == usage["completion_tokens"]
    account = fetch_rows(stand, "SELECT * FROM llm_tenant WHERE tenant = 'ada'")[0]
    charged = (account["prompt_tokens"], account["output_tokens"])
    assert charged == (usage["prompt_tokens"], usage["completion_tokens"])


def test_the_proxy_answers_as_openai_does(stand: Stand, endpoint: str) -> None:
    headers, completion = eventually(lambda: ask_llm(stand, endpoint, "bob"))
    assert headers["x-berth-queue-ms"] is not None
    assert completion["choices"][0]["message"]["content"]
    assert 0 < completion["usage"]["completion_tokens"] <= 16


def test_the_read_models_are_rebuilt_beside_the_live_ones(stand: Stand) -> None:
    log = KafkaLog(stand.stack.connection("operator"), client="e2e")
    stack = stand.stack
    result = asyncio.run(rebuild(stack.postgres, log, stack.partitions, swap=True))
    assert result.different == [] and result.swapped and result.events > 20
    job_id = submit_job(stand, simulated={"duration_s": 0.05})
    assert stand.ended(job_id)["phase"] == "succeeded"


def test_verify_has_no_violations_after_all_of_them(stand: Stand) -> None:
    assert stand.verify().violations == []
