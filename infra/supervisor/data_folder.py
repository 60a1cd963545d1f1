"""The data folder of a stack: it holds the state and the operator key of one broker."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from infra.machine.process import DidNotStart
from infra.supervisor.running import OPERATOR_KEY, Broker, NoStack, load

EMBEDDED: Broker = "embedded"
DURABLE: tuple[Broker, ...] = ("kafka", "external", "kafka-plain")


class OtherStack(DidNotStart):
    """The folder belongs to a stack with another broker, whose key would be lost or misused."""


def claim_folder(data_dir: Path, broker: Broker) -> None:
    """Let a stack with this broker have the folder. Raises OtherStack.

    The key of an embedded stack is removed: it ended with its broker, and a stack that finds a key
    takes its pools for created.
    """
    for other in DURABLE:
        if other != broker and (data_dir / other).is_dir():
            raise OtherStack(
                f"{data_dir} holds the data of a stack with the broker {other}; start that one "
                f"with `berth up --broker {_option_of(other)}`, or name another folder: --data DIR"
            )
    with suppress(NoStack):
        if broker != EMBEDDED and load(data_dir).broker == EMBEDDED:
            (data_dir / OPERATOR_KEY).unlink(missing_ok=True)


def _option_of(broker: Broker) -> str:
    return "HOST:PORT,..." if broker == "external" else broker
