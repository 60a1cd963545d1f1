"""Addresses and files of one installation, from which its programs get their settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificate and key of the APIs, and the CA of their clients, as PEM files."""

    ca: Path
    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Guarded:
    """Files of a Kafka with users, and the address for its set-up."""

    ca: Path
    secrets: Path
    certificate: Path | None = None
    """The broker's own, with which users and rights are set up; None for an external Kafka, where
    its operators do that."""
    internal: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """Addresses of the installation's parts; a program gets those in its `takes`."""

    kafka: str
    postgres: str
    otlp: str
    data: Path
    partitions: int
    idempotent: bool
    durable: bool
    guarded: Guarded | None = None
    tls: Tls | None = None
    """None for plain HTTP on the loopback."""
    host: str = ""
    """Where public services listen, empty for the loopback."""
    postgres_projector: str = ""
    postgres_gateway: str = ""
    postgres_notifier: str = ""
    """Addresses with the roles of the services; `postgres` is the owner's."""
    archive: str = ""
    """Folder or address of the archive, empty for none."""
    secret_keys: str = ""
    """File of the keys of tenants' secrets."""
    bundles: str = ""
    """Folder or address of the bundles of jobs."""
    job_logs: str = ""
    """Folder or address of the output of jobs."""
    public_url: str = ""
    """Address of the API, which links to jobs begin with."""
