"""Apache Kafka without Docker: one KRaft node on the loopback, with jars fetched by Maven.

It accepts TLS only. The super user `root` manages users and ACLs and runs tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from infra.machine import maven
from infra.machine.process import START_S, DidNotStart, Running, free_ports, is_open, spawn
from infra.security import certificates
from infra.security.rights import SUPERUSER
from shared.process.connection import Connection

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
super.users=User:{superuser}
"""
"""Clients authenticate by password, the broker by its certificate: only it may call the controller,
and ACLs do not apply to it. Users and their rights are in `infra.security.acls`."""
PLAIN = """listener.security.protocol.map=CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
"""
"""Settings without security, for measurements only."""
QUICK = ("-XX:TieredStopAtLevel=1",)
HOT_ONLY = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=100000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Compile thresholds of the JVM: C2, which makes AES fast, compiles hot methods only, since each
compilation takes CPU from the clients after a start."""
CERTIFICATES, CONFIG = "certificates", "server.properties"


def cache_dir() -> Path:
    """Return the cache directory of the jars."""
    return maven.cache_dir(f"kafka-{VERSION}")


def missing() -> str:
    """Return what is missing to run Kafka here, empty if nothing is."""
    return maven.missing(cache_dir())


def fetch() -> Path:
    """Fetch the jars and return their directory; an interrupted download is repeated."""
    cache = cache_dir()
    if cache.is_dir():
        return cache
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as scratch:
        jars = Path(scratch) / "jars"
        (Path(scratch) / "pom.xml").write_text(POM)
        maven.run_tool(
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
    """Write the configuration for this port, and format the log on first use.

    Without `pems`, the directory of certificates, there is no security: for measurements only.
    """
    logs, config = data_dir / "log", data_dir / CONFIG
    data_dir.mkdir(parents=True, exist_ok=True)
    internal, controller = free_ports(2)
    text = PROPERTIES.format(
        port=port, internal=internal, controller=controller, logs=logs.resolve()
    )
    text += PLAIN if pems is None else SECURED.format(pems=pems.resolve(), superuser=SUPERUSER)
    config.write_text(text)
    if not (logs / "meta.properties").exists():
        format_log(config)


def format_log(config: Path) -> None:
    """Format the empty log of a node, as its configuration says."""
    tool = (*_java("64m", QUICK), "kafka.tools.StorageTool", "format")
    maven.run_tool([*tool, "-t", CLUSTER, "-c", str(config)])


def command(data_dir: Path) -> list[str]:
    """Return the command that runs the prepared node."""
    return [*_java(f"{HEAP_MIB}m", HOT_ONLY), "kafka.Kafka", str(data_dir / CONFIG)]


def root(data_dir: Path) -> Connection:
    """Return the connection with the broker's own certificate, to which ACLs do not apply."""
    properties = dict(
        line.split("=", 1) for line in (data_dir / CONFIG).read_text().splitlines() if "=" in line
    )
    listeners = dict(listener.split("://", 1) for listener in properties["listeners"].split(","))
    if "ssl.keystore.location" not in properties:
        return Connection(listeners["CLIENT"])
    return Connection(
        listeners["INTERNAL"],
        ca=Path(properties["ssl.truststore.location"]),
        certificate=Path(properties["ssl.keystore.location"]),
    )


def start(data_dir: Path, port: int, *, plain: bool = False) -> Running:
    """Start a node that keeps its data in `data_dir`, and wait until it answers."""
    folder = None if plain else data_dir / CERTIFICATES
    if folder is not None:
        certificates.make(folder)
    prepare(data_dir, port, folder)
    return run(data_dir, port)


def run(data_dir: Path, port: int) -> Running:
    """Start the prepared node, also after a crash, and wait until it answers."""
    running = spawn("kafka", command(data_dir), data_dir / "kafka.log")
    running.wait_ready(lambda: is_open(port), START_S)
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


def main() -> None:
    """Fetch the jars with `--fetch`; otherwise run the broker in this process."""
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
    argv = command(options.data)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main()
