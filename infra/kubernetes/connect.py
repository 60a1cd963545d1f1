"""`python -m infra.kubernetes.connect`: note the addresses of an installation in a cluster.

`berth access bootstrap --data DIR`, and every other `berth` command with that folder, then reaches
it as it reaches a stack of this machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from infra.supervisor.running import RunningStack, save
from shared.contracts.topics import LANES


def stack_of(options: argparse.Namespace) -> RunningStack:
    """Return the addresses; nothing of it runs here, so that nothing can be stopped here."""
    folder = options.data.resolve()
    return RunningStack(
        data_dir=folder,
        broker="external",
        partitions=options.partitions,
        kafka=options.kafka,
        kafka_ca=options.kafka_ca.resolve(),
        secrets=options.secrets.resolve(),
        gateway=options.gateway,
        llm=options.llm or options.gateway,
        tls=True,
        ca=options.ca.resolve(),
        postgres="",
        is_postgres_external=True,
        otlp="",
        archive=options.archive,
        state=folder,
        work=folder,
        ports={},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.kubernetes.connect", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder, which is made")
    parser.add_argument("--kafka", required=True, help="host:port of Kafka, as reached from here")
    parser.add_argument("--kafka-ca", type=Path, required=True, help="authority of Kafka")
    parser.add_argument("--secrets", type=Path, required=True, help="folder of Kafka's passwords")
    parser.add_argument("--gateway", required=True, help="https address of the gateway")
    parser.add_argument("--llm", default="", help="https address of the throttle")
    parser.add_argument("--ca", type=Path, required=True, help="authority of the gateway")
    parser.add_argument("--archive", default="", help="as ARCHIVE, with files of this machine")
    parser.add_argument("--partitions", type=int, default=LANES)
    options = parser.parse_args(arguments)
    options.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    save(stack_of(options))


if __name__ == "__main__":
    main()
