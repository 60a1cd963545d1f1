"""Lets the running broker read its renewed certificate, which it otherwise reads at its start."""

from __future__ import annotations

from pathlib import Path

from kafka.admin import ConfigResource, ConfigResourceType

from infra.broker import kafka, topics

NODE_ID = "1"
"""`node.id` of the one node in `infra.broker.kafka`."""
LISTENERS = ("client", "internal", "controller")


def reload_certificate(data_dir: Path) -> None:
    """Reload the certificate of every listener. Raises NoBroker, KafkaError.

    A broker reads changed files again with each change of its settings, here of the paths to the
    values that they have. They are removed again, as they would outlive a move of the data folder.
    The broker applies both shortly after it has acknowledged them, so a certificate that is renewed
    right after a reload may be served without another one.
    """
    root = kafka.root(data_dir)
    names = [f"listener.name.{listener}.ssl.keystore.location" for listener in LISTENERS]
    settings = dict.fromkeys(names, str(root.certificate))
    broker = ConfigResource(ConfigResourceType.BROKER, NODE_ID, configs=settings)
    admin = topics.connect(root)
    try:
        # The library does not know settings of a listener; the broker checks them.
        admin.alter_configs([broker], raise_on_unknown=False)
        admin.reset_configs([broker], raise_on_unknown=False)
    finally:
        admin.close()
