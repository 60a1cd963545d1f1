"""A Kafka of three brokers on the loopback, without security: each can be killed and emptied."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from infra.broker import kafka, topics
from infra.machine.process import Running, free_ports, is_open, spawn
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.patience import PATIENCE_S

NODES = (1, 2, 3)
SHARED = {"offsets.topic.replication.factor": "3", "transaction.state.log.replication.factor": "3"}


class ThreeBrokers:
    """Nodes that are broker and controller each; two of them are a majority."""

    def __init__(self, folder: Path) -> None:
        ports = free_ports(3 * len(NODES))
        self._folder = folder
        self._clients, self._internal, self._controllers = (
            dict(zip(NODES, ports[n::3], strict=True)) for n in range(3)
        )
        self._running: dict[int, Running] = {}
        self.connection = Connection(
            ",".join(f"127.0.0.1:{port}" for port in self._clients.values())
        )

    def start_all(self) -> None:
        for node in NODES:
            self._configure(node)
            self._launch(node)
        for node in NODES:
            self._wait(node)

    def stop_all(self) -> None:
        for running in self._running.values():
            running.kill()

    def restart(self, node: int) -> None:
        self._launch(node)
        self._wait(node)

    def kill(self, node: int) -> None:
        """Kill a broker without notice."""
        self._running[node].kill()

    def lose_disk(self, node: int) -> None:
        """Kill a broker, remove everything that it stored, and format its log anew."""
        self.kill(node)
        shutil.rmtree(self._data(node) / "log")
        kafka.format_log(self._data(node) / kafka.CONFIG)

    def leader_of(self, tp: TP) -> int:
        return int(self._partition(tp)["leader_id"])

    def in_sync(self, tp: TP) -> int:
        return len(self._partition(tp)["isr_nodes"])

    def elect_preferred(self) -> None:
        """Let the first replica of each partition lead again."""
        admin = topics.connect(self.connection)
        try:
            admin.elect_leaders(0, raise_errors=False)
        finally:
            admin.close()

    def _partition(self, tp: TP) -> dict[str, Any]:
        admin = topics.connect(self.connection)
        try:
            (topic,) = admin.describe_topics([tp.topic])
        finally:
            admin.close()
        partition: dict[str, Any] = topic["partitions"][tp.partition]
        return partition

    def _configure(self, node: int) -> None:
        voters = ",".join(f"{n}@127.0.0.1:{port}" for n, port in self._controllers.items())
        text = kafka.PROPERTIES.format(
            port=self._clients[node],
            internal=self._internal[node],
            controller=self._controllers[node],
            logs=(self._data(node) / "log").resolve(),
        )
        settings = dict(line.split("=", 1) for line in (text + kafka.PLAIN).splitlines() if line)
        settings |= {"node.id": str(node), "controller.quorum.voters": voters, **SHARED}
        self._data(node).mkdir(parents=True)
        config = self._data(node) / kafka.CONFIG
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        kafka.format_log(config)

    def _data(self, node: int) -> Path:
        return self._folder / f"broker-{node}"

    def _launch(self, node: int) -> None:
        data = self._data(node)
        self._running[node] = spawn(f"kafka-{node}", kafka.command(data), data / "kafka.log")

    def _wait(self, node: int) -> None:
        port = self._clients[node]
        self._running[node].wait_ready(lambda: is_open(port), PATIENCE_S)
