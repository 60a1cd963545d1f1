"""The broker and Postgres of a stack: started with it, or external ones that it only uses."""

from __future__ import annotations

import sys
from pathlib import Path

from infra.broker import kafka, tansu
from infra.machine.folders import socket_dir
from infra.machine.process import is_open, tied
from infra.postgres import server as postgres
from infra.security import certificates, kafka_users, rights
from infra.supervisor.configuration import Program
from infra.supervisor.external import ExternalPostgres, role_address
from infra.supervisor.listening import Listen
from infra.supervisor.running import RunningStack
from infra.supervisor.site import Guarded
from shared.process.connection import Connection

CERTIFICATES = "certificates"
"""Program that renews the certificates of the stack."""
PASSWORDS = "postgres-passwords"
"""Folder of the password files for an external Postgres."""


def prepare(stack: RunningStack, external: ExternalPostgres | None) -> None:
    """Create the data folders, certificates and passwords of the parts."""
    if external is None:
        postgres.prepare(_postgres(stack))
    else:
        external.store(passwords_of(stack.state.parent))
    if stack.ca is not None:
        hosts = Listen(stack.host).names if stack.host else ()
        certificates.make(stack.ca.parent, certificates.CertificateOptions(hosts))
    if stack.durable and not stack.is_broker_external:
        _prepare_kafka(stack)


def _prepare_kafka(stack: RunningStack) -> None:
    """Create the passwords of its users, then its configuration."""
    pems = None
    if stack.ca is not None and stack.secrets is not None:
        pems = stack.ca.parent
        kafka_users.make(stack.secrets, rights.users())
    kafka.prepare(_kafka(stack), _port(stack), pems)


def programs(stack: RunningStack) -> list[Program]:
    """Return the programs of the parts that the stack starts itself."""
    own = []
    if not stack.is_broker_external:
        broker = kafka.command(_kafka(stack)) if stack.durable else tansu.command(_port(stack))
        command = [*tied("TERM"), *broker]
        own += [Program("broker", command, is_part=True, restarts=stack.durable, stop_wait_s=20)]
    if not stack.is_postgres_external:
        command = postgres.command(_postgres(stack))
        own += [Program("postgres", command, is_part=True, stop_signal="INT")]
    if stack.ca is not None:
        own.append(_renewal(stack, stack.ca.parent))
    return own


def _renewal(stack: RunningStack, folder: Path) -> Program:
    """Return the program that renews certificates; the own Kafka reads them again."""
    command = [*tied("TERM"), sys.executable, "-P", "-m", "infra.supervisor.renewal", str(folder)]
    if stack.secrets is not None and not stack.is_broker_external:
        command += ["--kafka", str(_kafka(stack))]
    return Program(CERTIFICATES, command, is_part=True)


def is_broker_open(stack: RunningStack) -> bool:
    """Return whether the broker listens; of an external one the step `topics` finds it out."""
    return stack.is_broker_external or is_open(_port(stack))


def is_postgres_ready(stack: RunningStack) -> bool:
    """Return whether Postgres answers; of an external one the step `migrate` finds it out."""
    return stack.is_postgres_external or postgres.is_ready(_postgres(stack))


def create_database(stack: RunningStack) -> None:
    """Create the database of the stack's own Postgres, if it is missing."""
    if not stack.is_postgres_external:
        postgres.create_database(_postgres(stack))


def address_of(stack: RunningStack, role: str) -> str:
    """Return the address with which a service enters Postgres, without a secret."""
    if stack.is_postgres_external:
        return role_address(stack.postgres, role, passwords_of(stack.state.parent))
    return postgres.dsn(_postgres(stack), user=role)


def passwords_of(root: Path) -> Path:
    """Return the folder of the password files, below the folder of the stack's broker."""
    return root / PASSWORDS


def guarded(stack: RunningStack) -> Guarded | None:
    """Return the files with which programs enter a Kafka with users; None for a plain broker."""
    connection_ca = stack.kafka_ca or stack.ca
    if connection_ca is None or stack.secrets is None:
        return None
    if stack.is_broker_external:
        return Guarded(connection_ca, stack.secrets)
    broker = root(stack)
    assert broker.certificate is not None
    return Guarded(connection_ca, stack.secrets, broker.certificate, broker.servers)


def root(stack: RunningStack) -> Connection:
    """Return the connection with the own broker's certificate, for measurements and tests."""
    return kafka.root(_kafka(stack)) if stack.durable else stack.connection("")


def socket_folder(stack: RunningStack) -> Path:
    """Return the folder of the socket of the stack's own Postgres."""
    return socket_dir(_postgres(stack))


def _port(stack: RunningStack) -> int:
    return int(stack.kafka.rpartition(":")[2])


def _kafka(stack: RunningStack) -> Path:
    return stack.state.parent / "kafka"


def _postgres(stack: RunningStack) -> Path:
    return stack.state.parent / "postgres"
