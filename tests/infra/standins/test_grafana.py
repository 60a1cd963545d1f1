"""The stand-in of Grafana reads what Grafana reads, and says which query fails."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.standins import grafana
from tests.serving import Quiet, serving

BOARD = {
    "uid": "one",
    "title": "One <b>",
    "panels": [
        {"title": "row", "panels": [{"title": "up", "targets": [{"expr": "up"}]}]},
        {"title": "rate", "targets": [{"expr": "rate(x[$__rate_interval])"}, {"expr": "bad("}]},
    ],
}


class Prometheus(Quiet):
    """Answers every query but one, as Prometheus does."""

    def do_GET(self) -> None:
        bad = "bad" in self.path
        row = {"metric": {"__name__": "up", "job": "<i>"}, "value": [0, "1"]}
        responses = {"error": "parse error"} if bad else {"data": {"result": [row]}}
        self.answer(400 if bad else 200, json.dumps(responses).encode())


@pytest.fixture(scope="module")
def prometheus() -> Iterator[str]:
    with serving(Prometheus) as url:
        yield url


@pytest.fixture
def provisioning(tmp_path: Path, prometheus: str) -> Path:
    boards = tmp_path / "boards"
    for folder in ("datasources", "dashboards"):
        (tmp_path / folder).mkdir()
    boards.mkdir()
    (boards / "one.json").write_text(json.dumps(BOARD))
    (tmp_path / "datasources" / "p.yaml").write_text(
        f"datasources: [{{name: p, type: prometheus, url: '{prometheus}'}}]"
    )
    (tmp_path / "dashboards" / "all.yaml").write_text(
        f"providers: [{{name: all, options: {{path: '{boards}'}}}}]"
    )
    return tmp_path


def test_queries_of_rows_and_panels_with_variables_filled() -> None:
    page = [(query.panel, query.expression) for query in grafana.queries(BOARD)]
    assert page == [("up", "up"), ("rate", "rate(x[5m])"), ("rate", "bad(")]


def test_a_query_that_the_source_refuses_is_named(provisioning: Path) -> None:
    boards = grafana.dashboards(provisioning)
    message = grafana.failing(boards, grafana.source_url(provisioning))
    assert message == ["one: rate: parse error"]


def test_an_unreachable_source_is_an_error(provisioning: Path) -> None:
    with pytest.raises(ValueError, match="refused"):
        grafana.run_query("http://127.0.0.1:9", "up")


def test_no_source_no_start(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no data source"):
        grafana.source_url(tmp_path)


def test_pages(provisioning: Path) -> None:
    server = grafana.server(provisioning, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        with urllib.request.urlopen(f"{url}/d/one") as answer:
            page = answer.read().decode()
        with urllib.request.urlopen(f"{url}/api/search") as answer:
            assert [row["uid"] for row in json.loads(answer.read())] == ["one"]
        with urllib.request.urlopen(f"{url}/api/health") as answer:
            assert json.loads(answer.read())["standin"]
    finally:
        server.shutdown()
        server.server_close()
    assert "One &lt;b&gt;" in page and "job=&lt;i&gt;" in page and "parse error" in page
