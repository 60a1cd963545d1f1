"""The stand-ins' own code, without Docker: what they forward, convert and are pinned to."""

from __future__ import annotations

import ast
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from infra.standins import build, collector
from infra.tracing import forward
from infra.tracing.otlp_http import Take, receiver
from infra.tracing.zipkin_spans import zipkin_spans
from tests.e2e.stand import eventually
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def listening(take: Take) -> Iterator[str]:
    server = receiver(take, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def post(url: str, body: bytes) -> int:
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, body), timeout=PATIENCE_S
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def a_request() -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    service = resource.resource.attributes.add(key="service.name")
    service.value.string_value = "placement"
    span = resource.scope_spans.add().spans.add(
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        parent_span_id=b"p" * 8,
        name="place",
        start_time_unix_nano=5_000_000,
        end_time_unix_nano=9_000_000,
    )
    span.attributes.add(key="job.id").value.string_value = "j1"
    span.links.add(trace_id=b"u" * 16, span_id=b"v" * 8)
    span.status.code = span.status.STATUS_CODE_ERROR
    return request


def test_a_span_is_whole_in_zipkins_form() -> None:
    (built,) = zipkin_spans(a_request())
    link = f"{(b'u' * 16).hex()}/{(b'v' * 8).hex()}"
    assert built == {
        "traceId": (b"t" * 16).hex(),
        "id": (b"s" * 8).hex(),
        "parentId": (b"p" * 8).hex(),
        "name": "place",
        "timestamp": 5000,
        "duration": 4000,
        "localEndpoint": {"serviceName": "placement"},
        "tags": {"job.id": "j1", "link.0": link, "error": "true"},
    }


def test_the_collectors_own_configuration_names_where_spans_go_on_to() -> None:
    config = yaml.safe_load((ROOT / "infra" / "collector.yaml").read_text())
    assert collector.endpoints(config) == {
        "http://jaeger:4318": None,
        "https://gateway:8080": "/run/secrets/ca_crt",
    }
    (pipeline,) = config["service"]["pipelines"].values()
    assert set(pipeline["exporters"]) == set(config["exporters"])


def test_a_batch_goes_on_as_it_came_once_the_other_side_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forward, "RETRY_S", 0.01)
    taken: list[tuple[bytes, str, str]] = []
    answers = iter([503, 200])

    def take(*batch: str | bytes) -> int:
        status = next(answers)
        if status == 200:
            taken.append(batch)  # type: ignore[arg-type]
        return status

    with listening(take) as address:
        forward.Forward(f"{address}/v1/traces").put((b"spans", "application/x-protobuf", "gzip"))
        assert eventually(lambda: taken) == [(b"spans", "application/x-protobuf", "gzip")]


def test_a_receiver_takes_traces_only_and_no_flood() -> None:
    with listening(lambda *_: 200) as address:
        assert post(f"{address}/v1/traces", b"x") == 200
        assert post(f"{address}/v1/logs", b"x") == 404


def test_the_decoder_of_spans_is_pinned_by_the_images_lock() -> None:
    lock = (ROOT / "infra" / "image" / "requirements.lock").read_text()
    built = build.pinned(lock, build.DECODER)
    assert [line.partition("==")[0] for line in built] == list(build.DECODER)
    with pytest.raises(KeyError):
        build.pinned(lock, ("no-such-package",))


def test_every_image_of_the_compose_file_but_ours_has_a_stand_in() -> None:
    images = build.images_of(ROOT / ".env")
    desired = {name for name in images if name.endswith("_IMAGE")} - {"BERTH_IMAGE"}
    assert {stand_in.variable for stand_in in build.STAND_INS} == desired
    assert build.STAND_INS[0].variable == "PYTHON_IMAGE"


@pytest.mark.parametrize("path", build.CODE)
def test_the_code_of_a_stand_in_is_there(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("path", build.CODE)
def test_the_code_of_a_stand_in_imports_nothing_that_its_image_lacks(path: str) -> None:
    own = {name.removesuffix(".py").replace("/", ".") for name in build.CODE}
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            files = {name for name in names if (ROOT / f"{name.replace('.', '/')}.py").is_file()}
            assert files <= own, path
