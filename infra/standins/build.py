"""Ensures that every image of `.env` exists: pulled, or built here as a labelled stand-in.

A stand-in is built from Debian packages and Maven artifacts. It has the tag of the real image and
the label `berth.standin`, which describes the differences.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from infra.broker import kafka
from infra.machine.process import DidNotStart
from infra.standins.base import PACKAGES, import_base, output
from infra.tracing import zipkin
from shared.process.progress import ReportLine

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LABEL = "berth.standin"
SOURCES = "berth.standin.sources"
DECODER = ("msgspec", "opentelemetry-proto", "protobuf")
"""Packages of the Jaeger stand-in, in the versions of the image's lock."""
CODE = (
    *(f"infra/standins/{name}.py" for name in ("collector", "jaeger", "grafana")),
    *(
        f"infra/tracing/{name}.py"
        for name in ("__main__", "forward", "otlp_http", "zipkin", "zipkin_spans")
    ),
    *(f"infra/machine/{name}.py" for name in ("maven", "process")),
    *(f"shared/telemetry/{name}.py" for name in ("names", "traced", "otlp_decode")),
)
"""Source files that a stand-in runs."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """Recipe of the image of a variable; `difference` is the text of its label."""

    variable: str
    difference: str
    dockerfile: str = ""
    fill: Callable[[Path], None] = lambda folder: None
    """Function that adds fetched files to the build directory."""


def _jars(folder: Path) -> None:
    shutil.copytree(kafka.fetch(), folder / "jars")


def _zipkin(folder: Path) -> None:
    shutil.copy(zipkin.fetch(), folder / "zipkin.jar")
    lock = (ROOT / "infra" / "image" / "requirements.lock").read_text()
    (folder / "decoder.txt").write_text("\n".join(pinned(lock, DECODER)) + "\n")


STAND_INS = (
    StandIn("PYTHON_IMAGE", "Debian 12 with its own Python 3.11"),
    StandIn(
        "KAFKA_IMAGE",
        "the same Apache Kafka from Maven on Debian's Java 17",
        "kafka.Dockerfile",
        _jars,
    ),
    StandIn("POSTGRES_IMAGE", "Debian's Postgres 15, not 17", "postgres.Dockerfile"),
    StandIn(
        "COLLECTOR_IMAGE",
        "a small forwarder in Python, not the OpenTelemetry Collector",
        "collector.Dockerfile",
    ),
    StandIn(
        "JAEGER_IMAGE",
        "Zipkin behind a small OTLP gateway, not Jaeger",
        "jaeger.Dockerfile",
        _zipkin,
    ),
    StandIn("PROMETHEUS_IMAGE", "Debian's Prometheus 2.42, not 3", "prometheus.Dockerfile"),
    StandIn(
        "GRAFANA_IMAGE", "a page of tables over the same files, not Grafana", "grafana.Dockerfile"
    ),
)
"""Images in build order; the first is the base of the others."""


def ensure(images: dict[str, str], report_line: ReportLine) -> list[str]:
    """Pull or build these images (variable -> tag); return the tags that are stand-ins."""
    for stand_in in STAND_INS:
        tag = images[stand_in.variable]
        if label(tag) and label(tag, SOURCES) != sources_of(stand_in):
            report_line(f"{tag}: its stand-in is of another version, building it anew")
        elif _is_here(tag) or _pulled(tag):
            continue
        else:
            report_line(f"no registry has {tag}: building a stand-in, {stand_in.difference}")
        build(stand_in, tag, images["PYTHON_IMAGE"])
    return stood_in(images)


def stood_in(images: dict[str, str]) -> list[str]:
    """Return a line per image that is a stand-in."""
    labels = (
        (images[stand_in.variable], label(images[stand_in.variable])) for stand_in in STAND_INS
    )
    return [f"{tag}: {text}" for tag, text in labels if text]


def build(stand_in: StandIn, tag: str, python_image: str) -> None:
    """Build a stand-in in a temporary directory."""
    if not stand_in.dockerfile:
        import_base(tag, {LABEL: stand_in.difference, SOURCES: sources_of(stand_in)})
        return
    with tempfile.TemporaryDirectory(prefix="berth-standin-") as name:
        folder = Path(name)
        for source in HERE.glob("*.sh"):
            shutil.copy(source, folder)
        for path in CODE:
            (folder / "code" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / "code" / path)
        stand_in.fill(folder)
        output(
            [
                "docker",
                "build",
                "-q",
                "-t",
                tag,
                "-f",
                str(HERE / stand_in.dockerfile),
                "--label",
                f"{LABEL}={stand_in.difference}",
                "--label",
                f"{SOURCES}={sources_of(stand_in)}",
                "--build-arg",
                f"PYTHON_IMAGE={python_image}",
                "--network",
                "host",
                str(folder),
            ]
        )


def sources_of(stand_in: StandIn) -> str:
    """Return a hash of the source files of a stand-in."""
    if not stand_in.dockerfile:
        return hashlib.sha256("".join(PACKAGES).encode()).hexdigest()[:16]
    ours = [HERE / stand_in.dockerfile, *sorted(HERE.glob("*.sh")), *(ROOT / path for path in CODE)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in ours)).hexdigest()[:16]


def label(tag: str, name: str = LABEL) -> str:
    """Return a label of an image, empty for a real or missing image."""
    command = ["docker", "image", "inspect", "-f", f'{{{{index .Config.Labels "{name}"}}}}', tag]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    standins = done.stdout.strip() if done.returncode == 0 else ""
    return "" if standins == "<no value>" else standins


def pinned(lock: str, names: Iterable[str]) -> list[str]:
    """Return `name==version` of each package from the lock. Raises KeyError."""
    lines = (line.partition(" ")[0] for line in lock.splitlines() if "==" in line)
    standins = {line.partition("==")[0]: line for line in lines}
    return [standins[name] for name in names]


def _is_here(tag: str) -> bool:
    command = ["docker", "image", "inspect", tag]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _pulled(tag: str) -> bool:
    command = ["docker", "pull", "-q", tag]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def images_of(env_file: Path) -> dict[str, str]:
    """Return the image variables of `.env`."""
    lines = (line.strip() for line in env_file.read_text().splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def main() -> None:
    """Build missing images and print which are stand-ins."""
    argparse.ArgumentParser(prog="python -m infra.standins.build", description=__doc__).parse_args()
    try:
        standins = ensure(images_of(ROOT / ".env"), lambda line: print(line, flush=True))  # noqa: T201
    except DidNotStart as error:
        raise SystemExit(str(error)) from None
    for line in standins:
        print(f"STAND-IN {line}")  # noqa: T201


if __name__ == "__main__":
    main()
