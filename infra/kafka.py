"""Apache Kafka without Docker: one KRaft node on the loopback, its jars fetched by Maven once."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from infra.process import DidNotStart, Running, free_ports, is_open, spawn

VERSION = "4.1.1"
SLF4J = "1.7.36"
HEAP_MIB = 512
# One node has one cluster; the id only has to be the same at each start.
CLUSTER = "YmVydGgtbG9jYWwtb25lMQ"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>berth</groupId><artifactId>kafka-runtime</artifactId><version>1</version>
<packaging>pom</packaging>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
<version>{VERSION}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-server</artifactId>
<version>{VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId>
<version>{SLF4J}</version></dependency>
</dependencies></project>
"""
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={logs}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=8388608
num.network.threads=2
num.io.threads=4
"""


def cache_dir() -> Path:
    """Where the jars are kept between runs."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "berth" / f"kafka-{VERSION}"


def missing() -> str:
    """What this machine lacks to run Kafka, or nothing."""
    if not shutil.which("java"):
        return "Java 17 or later is not installed"
    if not cache_dir().is_dir() and not shutil.which("mvn"):
        return "Maven is not installed"
    return ""


def fetch() -> Path:
    """The folder of the jars; an interrupted download leaves nothing that looks complete."""
    cache = cache_dir()
    if cache.is_dir():
        return cache
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as scratch:
        jars = Path(scratch) / "jars"
        (Path(scratch) / "pom.xml").write_text(POM)
        _run(["mvn", "-q", "-B", "-f", f"{scratch}/pom.xml", "dependency:copy-dependencies",
              "-DincludeScope=runtime", f"-DoutputDirectory={jars}"])  # fmt: skip
        try:
            jars.rename(cache)
        except OSError:
            # Another process was faster; its jars are the same.
            if not cache.is_dir():
                raise
    return cache


def prepare(data_dir: Path, port: int) -> None:
    """Write the configuration for this port, and format the log the first time."""
    logs, config = data_dir / "log", data_dir / "server.properties"
    data_dir.mkdir(parents=True, exist_ok=True)
    (controller,) = free_ports(1)
    config.write_text(PROPERTIES.format(port=port, controller=controller, logs=logs.resolve()))
    if not (logs / "meta.properties").exists():
        _run([*_java("64m"), "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", "format",
              "-t", CLUSTER, "-c", str(config)])  # fmt: skip


def command(data_dir: Path) -> list[str]:
    """How the prepared node is run."""
    return [*_java(f"{HEAP_MIB}m"), "kafka.Kafka", str(data_dir / "server.properties")]


def start(data_dir: Path, port: int) -> Running:
    """A node that answers; what it stores in `data_dir` is there again at the next start."""
    prepare(data_dir, port)
    running = spawn("kafka", command(data_dir), data_dir / "kafka.log")
    running.wait_ready(lambda: is_open(port), timeout_s=60)
    return running


def _java(heap: str) -> list[str]:
    java = shutil.which("java")
    if java is None:
        raise DidNotStart(missing())
    # One small node beside its clients: the serial collector and the fast compiler leave them CPU.
    return [java, f"-Xmx{heap}", "-XX:+ExitOnOutOfMemoryError", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true", "-cp", f"{fetch()}/*"]  # fmt: skip


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise DidNotStart(f"{command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        raise DidNotStart(f"{command[0]}: {(error.stdout + error.stderr).strip()}") from None


def main() -> None:
    """`--fetch` only fills the cache; otherwise this process becomes the broker."""
    parser = argparse.ArgumentParser(prog="python -m infra.kafka", description=__doc__)
    parser.add_argument("--fetch", action="store_true", help="only fetch the jars")
    parser.add_argument("--data", type=Path, default=Path(".berth/kafka"))
    parser.add_argument("--port", type=int, default=9092)
    options = parser.parse_args()
    if options.fetch:
        fetch()
        return
    prepare(options.data, options.port)
    run = command(options.data)
    os.execv(run[0], run)


if __name__ == "__main__":
    main()
