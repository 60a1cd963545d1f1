"""Apache Kafka without Docker: one KRaft node on the loopback, its jars fetched by Maven once.

It takes TLS only. `root` is who may do everything on it: make users and ACLs, and run tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from infra.machine.process import DidNotStart, Running, free_ports, is_open, spawn
from infra.security import certificates
from shared.connection import Connection

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
controller.listener.names=CONTROLLER
inter.broker.listener.name=INTERNAL
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
listeners=CLIENT://127.0.0.1:{port},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=CLIENT://127.0.0.1:{port},INTERNAL://127.0.0.1:{internal}
"""
SECURED = """listener.security.protocol.map=CLIENT:SASL_SSL,INTERNAL:SSL,CONTROLLER:SSL
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.client.scram-sha-512.sasl.jaas.config=\\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.internal.ssl.client.auth=required
listener.name.controller.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^CN=([^,]+)$/$1/
ssl.keystore.type=PEM
ssl.keystore.location={pems}/broker.pem
ssl.truststore.type=PEM
ssl.truststore.location={pems}/ca.crt
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=false
super.users=User:broker
"""
"""Clients come with a password, the broker itself with its certificate: it alone may call the
controller and is above the ACLs. `infra.security.acls` has the users and what they may do."""
PLAIN = """listener.security.protocol.map=CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
"""
"""Only to measure against."""
QUICK = ("-XX:TieredStopAtLevel=1",)
HOT_ONLY = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=100000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""The thorough compiler, which alone makes AES fast, gets what is really hot: each method that it
compiles takes CPU from the clients while a node is young."""
CERTIFICATES, CONFIG = "certificates", "server.properties"


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
        _run(
            [
                "mvn",
                "-q",
                "-B",
                "-f",
                f"{scratch}/pom.xml",
                "dependency:copy-dependencies",
                "-DincludeScope=runtime",
                f"-DoutputDirectory={jars}",
            ]
        )
        try:
            jars.rename(cache)
        except OSError:
            # Another process was faster; its jars are the same.
            if not cache.is_dir():
                raise
    return cache


def prepare(data_dir: Path, port: int, pems: Path | None) -> None:
    """Write the configuration for this port, and format the log the first time.

    Without `pems`, the folder of certificates, everybody may do everything: for measurements only.
    """
    logs, config = data_dir / "log", data_dir / CONFIG
    data_dir.mkdir(parents=True, exist_ok=True)
    internal, controller = free_ports(2)
    text = PROPERTIES.format(
        port=port, internal=internal, controller=controller, logs=logs.resolve()
    )
    text += PLAIN if pems is None else SECURED.format(pems=pems.resolve())
    config.write_text(text)
    if not (logs / "meta.properties").exists():
        _run(
            [
                *_java("64m", QUICK),
                "kafka.tools.StorageTool",
                "format",
                "-t",
                CLUSTER,
                "-c",
                str(config),
            ]
        )


def command(data_dir: Path) -> list[str]:
    """How the prepared node is run."""
    return [*_java(f"{HEAP_MIB}m", HOT_ONLY), "kafka.Kafka", str(data_dir / CONFIG)]


def root(data_dir: Path) -> Connection:
    """The prepared node, by its own certificate: above all ACLs, for its set-up and for tests."""
    known = dict(
        line.split("=", 1) for line in (data_dir / CONFIG).read_text().splitlines() if "=" in line
    )
    listeners = dict(each.split("://", 1) for each in known["listeners"].split(","))
    if "ssl.keystore.location" not in known:
        return Connection(listeners["CLIENT"])
    return Connection(
        listeners["INTERNAL"],
        ca=Path(known["ssl.truststore.location"]),
        certificate=Path(known["ssl.keystore.location"]),
    )


def start(data_dir: Path, port: int, *, plain: bool = False) -> Running:
    """A node that answers; what it stores in `data_dir` is there again at the next start."""
    folder = None if plain else data_dir / CERTIFICATES
    if folder is not None:
        certificates.make(folder)
    prepare(data_dir, port, folder)
    return run(data_dir, port)


def run(data_dir: Path, port: int) -> Running:
    """The prepared node, at all its addresses; also again after it died."""
    running = spawn("kafka", command(data_dir), data_dir / "kafka.log")
    running.wait_ready(lambda: is_open(port), timeout_s=60)
    return running


def _java(heap: str, compilers: Sequence[str]) -> list[str]:
    java = shutil.which("java")
    if java is None:
        raise DidNotStart(missing())
    # One small node beside its clients: the serial collector leaves them CPU.
    return [
        java,
        f"-Xmx{heap}",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:+UseSerialGC",
        *compilers,
        "-Djava.awt.headless=true",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-cp",
        f"{fetch()}/*",
    ]


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise DidNotStart(f"{command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        raise DidNotStart(f"{command[0]}: {(error.stdout + error.stderr).strip()}") from None


def main() -> None:
    """`--fetch` only fills the cache; otherwise this process becomes the broker."""
    parser = argparse.ArgumentParser(prog="python -m infra.broker.kafka", description=__doc__)
    parser.add_argument("--fetch", action="store_true", help="only fetch the jars")
    parser.add_argument("--data", type=Path, default=Path(".berth/kafka"))
    parser.add_argument("--port", type=int, default=9092)
    options = parser.parse_args()
    if options.fetch:
        fetch()
        return
    certificates.make(options.data / CERTIFICATES)
    prepare(options.data, options.port, options.data / CERTIFICATES)
    words = command(options.data)
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
