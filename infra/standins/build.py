"""Sees that every image of `.env` is there: pulled, or built here as a labelled stand-in.

A stand-in is made from Debian's packages and Maven's artifacts. It carries the tag that the compose
file names and the label `berth.standin`, whose text says how it differs from the real image.
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

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LABEL = "berth.standin"
SOURCES = "berth.standin.sources"
DECODER = ("msgspec", "opentelemetry-proto", "protobuf")
"""What decodes a span in the stand-in of Jaeger; the versions are those of the image's lock."""
CODE = (
    *(f"infra/standins/{name}.py" for name in ("collector", "jaeger", "grafana")),
    *(
        f"infra/tracing/{name}.py"
        for name in ("__main__", "forward", "otlp_http", "zipkin", "zipkin_spans")
    ),
    "infra/machine/process.py",
    *(f"shared/telemetry/{name}.py" for name in ("names", "traced", "otlp_decode")),
)
"""Our own files that a stand-in runs; the folders are namespace packages there."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """How the image of one variable is made; `what` is what it tells of itself."""

    variable: str
    what: str
    dockerfile: str = ""
    fill: Callable[[Path], None] = lambda folder: None
    """Puts into the build's folder what this machine has to fetch for it."""


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
"""In this order: the others stand on the first."""


def ensure(images: dict[str, str], say: Callable[[str], None]) -> list[str]:
    """Have all of these images (variable -> tag); returns the tags that are stand-ins."""
    for each in STAND_INS:
        tag = images[each.variable]
        if label(tag) and label(tag, SOURCES) != sources_of(each):
            say(f"{tag}: its stand-in is of another version, building it anew")
        elif _is_here(tag) or _pulled(tag):
            continue
        else:
            say(f"no registry has {tag}: building a stand-in, {each.what}")
        build(each, tag, images["PYTHON_IMAGE"])
    return stood_in(images)


def stood_in(images: dict[str, str]) -> list[str]:
    """One line for each image here that is a stand-in."""
    labels = ((images[each.variable], label(images[each.variable])) for each in STAND_INS)
    return [f"{tag}: {text}" for tag, text in labels if text]


def build(wanted: StandIn, tag: str, python_image: str) -> None:
    """Make one stand-in; the build's folder is gone afterwards."""
    if not wanted.dockerfile:
        import_base(tag, {LABEL: wanted.what, SOURCES: sources_of(wanted)})
        return
    with tempfile.TemporaryDirectory(prefix="berth-standin-") as name:
        folder = Path(name)
        for source in HERE.glob("*.sh"):
            shutil.copy(source, folder)
        for path in CODE:
            (folder / "code" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / "code" / path)
        wanted.fill(folder)
        output(
            [
                "docker",
                "build",
                "-q",
                "-t",
                tag,
                "-f",
                str(HERE / wanted.dockerfile),
                "--label",
                f"{LABEL}={wanted.what}",
                "--label",
                f"{SOURCES}={sources_of(wanted)}",
                "--build-arg",
                f"PYTHON_IMAGE={python_image}",
                "--network",
                "host",
                str(folder),
            ]
        )


def sources_of(wanted: StandIn) -> str:
    """A hash of what of ours is in it: a stand-in of other sources is out of date."""
    if not wanted.dockerfile:
        return hashlib.sha256("".join(PACKAGES).encode()).hexdigest()[:16]
    ours = [HERE / wanted.dockerfile, *sorted(HERE.glob("*.sh")), *(ROOT / path for path in CODE)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in ours)).hexdigest()[:16]


def label(tag: str, name: str = LABEL) -> str:
    """What a stand-in says of itself; nothing for a real image, or none."""
    asked = ["docker", "image", "inspect", "-f", f'{{{{index .Config.Labels "{name}"}}}}', tag]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    found = done.stdout.strip() if done.returncode == 0 else ""
    return "" if found == "<no value>" else found


def pinned(lock: str, names: Iterable[str]) -> list[str]:
    """`name==version` of each, as the lock has it; KeyError for one it does not have."""
    lines = (line.partition(" ")[0] for line in lock.splitlines() if "==" in line)
    found = {line.partition("==")[0]: line for line in lines}
    return [found[name] for name in names]


def _is_here(tag: str) -> bool:
    asked = ["docker", "image", "inspect", tag]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _pulled(tag: str) -> bool:
    asked = ["docker", "pull", "-q", tag]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def images_of(env_file: Path) -> dict[str, str]:
    """The variables of `.env`."""
    lines = (line.strip() for line in env_file.read_text().splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def main() -> None:
    """Build what is missing, and say which images are stand-ins."""
    argparse.ArgumentParser(prog="python -m infra.standins.build", description=__doc__).parse_args()
    try:
        found = ensure(images_of(ROOT / ".env"), lambda line: print(line, flush=True))  # noqa: T201
    except DidNotStart as error:
        raise SystemExit(str(error)) from None
    for line in found:
        print(f"STAND-IN {line}")  # noqa: T201


if __name__ == "__main__":
    main()
