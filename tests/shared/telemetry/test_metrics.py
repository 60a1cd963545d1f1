"""The endpoint, scraped over loopback as Prometheus and a health check would."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path

import pytest

from shared.telemetry.metrics import CaughtUp, Metrics, probe_loop_stall
from tests.patience import PATIENCE_S


def get(port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def test_a_scrape_shows_what_was_counted() -> None:
    metrics = Metrics("placement", "p1")
    metrics.decisions.labels("job.placed.v1").inc(3)
    metrics.decision_s.observe(0.02)
    metrics.spans_dropped(2, "queue_full")
    endpoint = metrics.serve(0, lambda: True)
    status, text = get(endpoint.port, "/metrics")
    endpoint.close()
    assert status == 200
    assert 'berth_decisions_total{type="job.placed.v1"} 3.0' in text
    assert 'berth_decision_seconds_bucket{le="0.025"} 1.0' in text
    assert 'berth_spans_dropped_total{reason="queue_full"} 2.0' in text
    assert 'berth_info{instance="p1",service="placement"} 1.0' in text


def test_the_disk_is_known_before_the_folder_is_made(tmp_path: Path) -> None:
    metrics = Metrics("placement")
    metrics.watch_disk(tmp_path / "not" / "yet")
    free, size = (
        metrics.registry.get_sample_value(f"berth_disk_{what}_bytes") for what in ("free", "size")
    )
    assert free is not None and size is not None and 0 < free < size


class EndingCertificate:
    left_s = 5.0

    def expires_in_s(self) -> float:
        return self.left_s


def test_the_end_of_a_certificate_is_read_at_each_scrape() -> None:
    certificate, name = EndingCertificate(), "berth_certificate_expires_seconds"
    metrics, plain = Metrics("gateway"), Metrics("gateway")
    metrics.watch_certificate(certificate)
    plain.watch_certificate(None)
    assert metrics.registry.get_sample_value(name) == 5
    certificate.left_s = -1
    assert metrics.registry.get_sample_value(name) == -1
    assert plain.registry.get_sample_value(name) is None


def test_a_reader_at_the_end_is_not_behind() -> None:
    at_s = [7.0]
    metrics, reader = Metrics("projector"), CaughtUp(lambda: at_s[0])
    metrics.watch_behind(reader.behind_s)
    at_s[0] += 3
    assert metrics.registry.get_sample_value("berth_behind_seconds") == 3
    reader.note()
    assert metrics.registry.get_sample_value("berth_behind_seconds") == 0


def broken() -> bool:
    raise RuntimeError("no broker at 10.0.0.1")


@pytest.mark.parametrize(
    ("health", "status", "report"),
    [
        (lambda: True, 200, {"ready": True}),
        (lambda: False, 503, {"ready": False, "reason": "not ready"}),
        (lambda: {"ready": True, "lag": 3}, 200, {"ready": True, "lag": 3}),
        (
            lambda: {"ready": False, "reason": "folding", "seq": 7},
            503,
            {"ready": False, "reason": "folding", "seq": 7},
        ),
        (lambda: {"lag": 3}, 503, {"ready": False, "reason": "no reason given", "lag": 3}),
        (broken, 503, {"ready": False, "reason": "the health check raised RuntimeError"}),
    ],
)
def test_health_is_503_with_a_reason_unless_ready(
    health: object, status: int, report: Mapping[str, object]
) -> None:
    endpoint = Metrics("placement").serve(0, health)  # type: ignore[arg-type]
    answer = get(endpoint.port, "/health?verbose")
    endpoint.close()
    assert (answer[0], json.loads(answer[1])) == (status, report)


def test_other_paths_are_404() -> None:
    endpoint = Metrics("placement").serve(0, lambda: True)
    assert get(endpoint.port, "/admin")[0] == 404
    endpoint.close()


def test_an_idle_client_does_not_delay_others() -> None:
    endpoint = Metrics("placement").serve(0, lambda: True)
    with socket.create_connection(("127.0.0.1", endpoint.port)):
        assert get(endpoint.port, "/health")[0] == 200
    endpoint.close()


def test_the_port_is_free_again_after_close() -> None:
    first = Metrics("placement").serve(0, lambda: True)
    first.close()
    second = Metrics("placement").serve(first.port, lambda: True)
    assert get(first.port, "/health")[0] == 200
    second.close()


async def test_a_stalled_loop_is_seen() -> None:
    metrics = Metrics("placement")
    probe = asyncio.create_task(probe_loop_stall(metrics, every_s=0.01))
    await asyncio.sleep(0.05)
    time.sleep(0.3)
    await asyncio.sleep(0.05)
    probe.cancel()
    samples = metrics.registry.get_sample_value
    count = samples("berth_event_loop_stall_seconds_count") or 0
    quick = samples("berth_event_loop_stall_seconds_bucket", {"le": "0.25"}) or 0
    assert count > quick
    assert (samples("berth_event_loop_stall_seconds_sum") or 0) > 0.2
