"""The page shows the figures of services, lists unreachable ones, and runs no script."""

from __future__ import annotations

import re
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from shared.telemetry.figures import Figure
from shared.telemetry.metric_names import METRICS
from shared.telemetry.metrics import Metrics
from shared.telemetry.page import render_page
from shared.telemetry.scrape import quantile, samples_of, scrape, scrape_all
from tests.patience import PATIENCE_S
from tests.serving import Quiet, serving

AT = "2026-11-21 12:00:00 UTC"


class Nonsense(Quiet):
    def do_GET(self) -> None:
        self.answer(200, b"<html>")


@contextmanager
def refusing() -> Iterator[str]:
    """Yield an address that nothing listens on, and that no other process can get meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def placement() -> Metrics:
    metrics = Metrics("placement")
    metrics.decisions.labels("job.placed.v1").inc(7)
    for took_s in (0.002, 0.002, 0.3):
        metrics.decision_s.observe(took_s)
    metrics.show(
        [
            Figure("berth_jobs", 12, ("<b>demo", "waiting")),
            Figure("berth_gpus", 6, ("<b>demo", "a100")),
            Figure("berth_gpus", 2, ("<b>demo", "h100")),
            Figure("berth_gpu_utilization_ratio", 0.75, ("<b>demo",)),
            Figure("berth_queue_oldest_wait_seconds", 600, ("<b>demo",)),
        ]
    )
    return metrics


def test_the_figures_of_all_services_stand_on_one_page() -> None:
    endpoint = placement().serve(0, lambda: True)
    try:
        text = render_page(scrape_all({"placement": f"127.0.0.1:{endpoint.port}"}), AT)
    finally:
        endpoint.close()
    cells = re.findall(r"<td[^>]*>(.*?)</td>", text)
    assert cells[:7] == ["&lt;b&gt;demo", "8", "75 %", "–", "12", "10 min", "–"]
    assert "placement" in cells and "≤ 500 ms" in cells
    assert "1 of 1 services answer" in text and AT in text


def test_connected_agents_are_listed_by_pool_and_version() -> None:
    metrics = Metrics("executor")
    metrics.show([Figure("berth_agent_sessions", 3, ("gpu", "0.2.0"))])
    endpoint = metrics.serve(0, lambda: True)
    try:
        text = render_page(scrape_all({"executor": f"127.0.0.1:{endpoint.port}"}), AT)
    finally:
        endpoint.close()
    cells = re.findall(r"<td[^>]*>(.*?)</td>", text)
    assert cells[cells.index("0.2.0") - 1 :][:3] == ["gpu", "0.2.0", "3"]


def test_an_unreachable_service_is_named_and_its_figures_are_not_zero() -> None:
    with refusing() as address:
        text = render_page(scrape_all({"priority": address}), AT)
    assert "0 of 1 services answer" in text
    assert "priority does not answer (ConnectionRefusedError)" in text
    assert "no service answers" in text and "<td>0</td>" not in text


def test_what_answers_nonsense_is_away_as_well() -> None:
    with serving(Nonsense) as url:
        problem = scrape("x", url.removeprefix("http://")).problem
    assert problem == "does not answer (ValueError)"
    assert scrape_all({}) == []


def test_the_page_is_served_beside_the_metrics_and_may_load_and_run_nothing() -> None:
    endpoint = Metrics("gateway").serve(0, lambda: True, pages={"/": lambda: render_page([], AT)})
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{endpoint.port}/", timeout=PATIENCE_S
        ) as answer:
            text = answer.read().decode()
            policy = answer.headers["Content-Security-Policy"]
    finally:
        endpoint.close()
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"<script|src=|href=|url\(|@import", text)


def test_a_quantile_is_the_bound_of_its_bucket() -> None:
    endpoint = placement().serve(0, lambda: True)
    try:
        scraped = scrape("placement", f"127.0.0.1:{endpoint.port}")
    finally:
        endpoint.close()
    assert quantile(scraped, "berth_decision_seconds", 0.5) == 0.0025
    assert quantile(scraped, "berth_decision_seconds", 0.99) == 0.5
    assert quantile(scraped, "berth_solve_seconds", 0.99) is None


def test_a_series_that_is_gone_is_gone_from_the_next_scrape() -> None:
    metrics = placement()
    metrics.show([Figure("berth_lanes_held", 0)])
    endpoint = metrics.serve(0, lambda: True)
    try:
        scraped = scrape("placement", f"127.0.0.1:{endpoint.port}")
    finally:
        endpoint.close()
    assert scraped.series("berth_jobs") == [] and scraped.total("berth_lanes_held") == 0
    assert samples_of("") == {}


def test_a_head_has_the_description_of_its_metric_and_text_stands_at_the_left() -> None:
    endpoint = placement().serve(0, lambda: True)
    try:
        text = render_page(scrape_all({"placement": f"127.0.0.1:{endpoint.port}"}), AT)
    finally:
        endpoint.close()
    fairness = METRICS["berth_fairness_gap_ratio"].text
    assert f'<th title="{fairness}">fairness gap</th>' in text
    assert "<th class=text>pool</th>" in text and "<td class=text>placement</td>" in text
