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

    A broker reads a file again when the setting that names it is set, also to the same path. The
    setting is removed again, as it would outlive a move of the data folder.
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
