"""Stand-in of Grafana: reads the provisioning files and shows each panel's values as a table.

It shows that the data source answers every query of every dashboard; a failing query is shown as an
error and counted in `/api/health`.
"""

from __future__ import annotations

import html
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

PORT = 3000
PROVISIONING = Path("/etc/grafana/provisioning")
QUERY_TIMEOUT_S = 5.0
INTERVAL = "5m"
VARIABLES = ("$__rate_interval", "$__interval", "$__range")
SERIES_SHOWN = 12

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a panel."""

    panel: str
    expression: str


def source_url(provisioning: Path) -> str:
    """Return the address of the default Prometheus data source. Raises ValueError."""
    for source in _listed(provisioning / "datasources", "datasources"):
        if source.get("type") == "prometheus":
            return str(source["url"]).rstrip("/")
    raise ValueError(f"{provisioning}: no data source of type prometheus")


def dashboards(provisioning: Path) -> dict[str, Json]:
    """Return the dashboards of all providers by uid."""
    boards: dict[str, Json] = {}
    for provider in _listed(provisioning / "dashboards", "providers"):
        for path in sorted(Path(provider["options"]["path"]).glob("**/*.json")):
            board = json.loads(path.read_text())
            boards[board["uid"]] = board
    return boards


def queries(board: Json) -> Iterator[Query]:
    """Yield the queries in the order of the panels, those inside rows included."""
    for panel in board.get("panels", ()):
        yield from queries(panel)
        for target in panel.get("targets", ()):
            yield Query(panel.get("title", ""), _plain(target["expr"]))


def run_query(url: str, expression: str) -> list[tuple[str, str]]:
    """Return labels and value of each series. Raises ValueError with the error of the source."""
    address = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    try:
        with urllib.request.urlopen(address, timeout=QUERY_TIMEOUT_S) as answer:
            result = json.loads(answer.read())["data"]["result"]
    except urllib.error.HTTPError as error:
        with error:
            raise ValueError(json.loads(error.read()).get("error", str(error.code))) from None
    except OSError as error:
        raise ValueError(f"{url}: {error}") from None
    return [(_labels(series["metric"]), series["value"][1]) for series in result]


def page(board: Json, url: str) -> str:
    """Return the dashboard as HTML tables."""
    parts = [
        f"<h1>{html.escape(board['title'])}</h1><p>A stand-in of Grafana: values, no graphs.</p>"
    ]
    for query in queries(board):
        parts.append(
            f"<h2>{html.escape(query.panel)}</h2><code>{html.escape(query.expression)}</code>"
        )
        try:
            rows = run_query(url, query.expression)
        except ValueError as error:
            parts.append(f"<p class=error>{html.escape(str(error))}</p>")
            continue
        cells = "".join(
            f"<tr><td>{html.escape(labels)}</td><td>{html.escape(value)}</td></tr>"
            for labels, value in rows[:SERIES_SHOWN]
        )
        parts.append(f"<table>{cells or '<tr><td>no data</td></tr>'}</table>")
    return "<!doctype html><meta charset=utf-8>" + "".join(parts)


def failing(boards: dict[str, Json], url: str) -> list[str]:
    """Return a line per query that fails."""
    failures: list[str] = []
    for uid, board in boards.items():
        for query in queries(board):
            try:
                run_query(url, query.expression)
            except ValueError as error:
                failures.append(f"{uid}: {query.panel}: {error}")
    return failures


def answer(path: str, boards: dict[str, Json], url: str) -> tuple[int, str, str]:
    """Return status, content type and body of a GET."""
    if path == "/api/health":
        return 200, "application/json", json.dumps({"database": "ok", "standin": True})
    if path == "/api/search":
        rows = [{"uid": uid, "title": board["title"]} for uid, board in boards.items()]
        return 200, "application/json", json.dumps(rows)
    if path == "/api/failing":
        return 200, "application/json", json.dumps(failing(boards, url))
    uid = path.removeprefix("/d/").partition("/")[0]
    if uid in boards:
        return 200, "text/html; charset=utf-8", page(boards[uid], url)
    links = "".join(f'<li><a href="/d/{uid}">{html.escape(uid)}</a>' for uid in boards)
    return (200 if path == "/" else 404), "text/html; charset=utf-8", f"<ul>{links}</ul>"


def server(provisioning: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of the dashboards; it reads the files once, now."""
    url, boards = source_url(provisioning), dashboards(provisioning)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, body = answer(self.path.partition("?")[0], boards, url)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Log nothing per request."""

    http_server = ThreadingHTTPServer(("", port), Handler)
    http_server.daemon_threads = True
    return http_server


def _listed(folder: Path, name: str) -> Iterator[Json]:
    for path in sorted(folder.glob("*.y*ml")):
        yield from yaml.safe_load(path.read_text()).get(name) or ()


def _plain(expression: str) -> str:
    for variable in VARIABLES:
        expression = expression.replace(variable, INTERVAL)
    return expression


def _labels(metric: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in metric.items() if name != "__name__")


def main() -> None:
    folder = Path(os.environ.get("GF_PATHS_PROVISIONING", str(PROVISIONING)))
    server(folder, int(os.environ.get("GF_SERVER_HTTP_PORT", str(PORT)))).serve_forever()


if __name__ == "__main__":
    main()
