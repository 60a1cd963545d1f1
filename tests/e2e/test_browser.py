"""Zipkin and the metrics page of a running stack, as shown in Chromium.

With BERTH_SCREENSHOTS=1 (`make screenshots`) the pictures of the docs are taken anew.
"""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from infra.supervisor import control, supervise
from infra.supervisor.stack import SERVICES
from infra.tracing import zipkin
from tests.e2e.stand import Stand, eventually
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.stack]

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MOST_BYTES = 200_000
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
SHOWN = (
    "gateway: submit",
    "admission: admit",
    "priority: rank",
    "placement: place",
    "placement: start",
)
WAIT_MS = 1000 * PATIENCE_S
expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def stand(request: pytest.FixtureRequest) -> Stand:
    if lacks := zipkin.missing():
        pytest.skip(f"Zipkin: {lacks}")
    return request.getfixturevalue("shared_stand")  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def job_id(stand: Stand) -> Iterator[str]:
    """A gang that ran and ended, behind a few others that still run."""
    behind = []
    for tenant, workers in (("ada", 2), ("bob", 1), ("ada", 1)):
        spec: dict[str, Any] = {
            "gang": {"workers": workers, "gpus_per_worker": 4},
            "simulated": {"duration_s": 600},
        }
        behind.append(stand.submit(caller=tenant, **spec)["job_id"])
    job_id = str(stand.submit(gang={"workers": 2, "gpus_per_worker": 2})["job_id"])
    assert stand.ended(job_id)["phase"] == "succeeded"
    yield job_id
    for running in behind:
        assert stand.call("DELETE", f"/v1/jobs/{running}")[0] == 202
        assert stand.ended(running)["phase"] == "cancelled"


@pytest.fixture(scope="module")
def browser(stand: Stand) -> Iterator[Browser]:
    """It takes the event loop of the tests, which the start of the stack needs before."""
    if not CHROMIUM:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        # A container has no user namespaces for its sandbox; it opens our own pages only.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1180, "height": 660})
    page.set_default_timeout(WAIT_MS)
    yield page
    page.close()


def traces_of(stand: Stand, job_id: str) -> list[list[dict[str, Any]]]:
    address = f"{stand.stack.traces}/api/v2/traces?annotationQuery=job.id%3D{job_id}&limit=50"
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
        traces: list[list[dict[str, Any]]] = json.loads(answer.read())
        return traces


def first_trace(stand: Stand, job_id: str) -> list[dict[str, Any]] | None:
    for spans in traces_of(stand, job_id):
        names = {f"{span['localEndpoint']['serviceName']}: {span['name']}" for span in spans}
        if names >= set(SHOWN):
            return spans
    return None


def keep(page: Page, name: str) -> None:
    """Take the picture of the docs, if BERTH_SCREENSHOTS is set."""
    if os.environ.get("BERTH_SCREENSHOTS"):
        IMAGES.mkdir(exist_ok=True)
        taken = page.screenshot(path=IMAGES / f"{name}.png", full_page=True)
        assert len(taken) < MOST_BYTES


def test_zipkin_shows_a_jobs_start_and_its_decision(stand: Stand, job_id: str, page: Page) -> None:
    spans = eventually(lambda: first_trace(stand, job_id))
    page.goto(f"{stand.stack.traces}/zipkin/traces/{spans[0]['traceId']}")
    for shown in SHOWN:
        expect(page.get_by_text(shown, exact=True).last).to_be_visible()
    page.get_by_text("placement: place", exact=True).last.click()
    for tag in ("decision.policy", "decision.nodes", "decision.waited_ms"):
        expect(page.get_by_text(tag)).to_be_visible()
    expect(page.get_by_text(job_id)).to_be_visible()
    keep(page, "trace")


def test_an_end_is_a_trace_of_its_own_with_a_link_to_the_first(stand: Stand, job_id: str) -> None:
    first = eventually(lambda: first_trace(stand, job_id))[0]["traceId"]

    def end() -> dict[str, Any] | None:
        spans = [span for spans in traces_of(stand, job_id) for span in spans]
        return next((span for span in spans if span["name"] == "finish"), None)

    span = eventually(end)
    assert span["traceId"] != first and "parentId" not in span
    assert span["tags"]["link.0"].startswith(f"{first}/")


def test_the_gateways_ring_has_the_same_spans(stand: Stand, job_id: str) -> None:
    in_zipkin = {span["id"] for span in eventually(lambda: first_trace(stand, job_id))}
    trace = stand.get(f"/v1/jobs/{job_id}/trace")
    assert trace and {span["span_id"] for span in trace["spans"]} >= in_zipkin


def test_the_metrics_page_shows_every_service_and_loads_nothing(
    stand: Stand, job_id: str, page: Page
) -> None:
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    address = f"http://127.0.0.1:{stand.stack.ports['gateway']['metrics']}/"
    page.goto(address)
    assert page.title() == f"Berth: {len(SERVICES)} of {len(SERVICES)} services answer"
    pool = page.locator("tr", has_text="virtual").first
    expect(pool.locator("td").nth(1)).to_have_text("32")
    expect(pool.locator("td").nth(6)).to_have_text("3")
    for service in SERVICES:
        expect(page.get_by_role("cell", name=service.name, exact=True)).to_be_visible()
    assert [url for url in urls if not url.startswith(address)] == []
    keep(page, "metrics")


def test_the_metrics_page_names_a_service_that_is_away(stand: Stand, page: Page) -> None:
    data_dir = stand.stack.data_dir
    control.stop(data_dir, "throttle")
    try:
        page.goto(f"http://127.0.0.1:{stand.stack.ports['gateway']['metrics']}/")
        expect(page.get_by_text("throttle does not answer")).to_be_visible()
        expect(page.get_by_role("cell", name="throttle")).to_have_count(0)
    finally:
        control.start(data_dir, "throttle")
        supervise.wait_ready(data_dir, ("throttle",), PATIENCE_S)
