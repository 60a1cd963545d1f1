"""Renews the certificates of a stack while it runs: `python -m infra.supervisor.renewal FOLDER`.

Servers of Berth take a renewed certificate by themselves (`shared.http.server_certificate`), Kafka
gets a request to read it again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from kafka.errors import KafkaError

from infra.broker.certificate import reload_certificate
from infra.broker.topics import NoBroker
from infra.security.certificate_files import BadCertificates
from infra.security.certificates import make
from shared.process.progress import ReportLine

EVERY_S = 86_400.0
"""s between two looks. Ten days lie between the renewal of a certificate and its end."""


def print_error(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def renew(folder: Path, report_line: ReportLine = print_error) -> list[str]:
    """Renew what is near its end, with the names that it has; return the names of those written.

    A failure is reported and tried again at the next look: running servers go on for days.
    """
    now = datetime.fromtimestamp(time.time(), UTC)
    try:
        written = make(folder, now=now)
    except BadCertificates as error:
        report_line(f"{now:%Y-%m-%d %H:%M} not renewed: {error}")
        return []
    if written:
        report_line(f"{now:%Y-%m-%d %H:%M} renewed: {', '.join(written)}")
    return written


def reload(kafka: Path, report_line: ReportLine = print_error) -> bool:
    """Let the broker with this data folder read its certificate; return whether it did."""
    try:
        reload_certificate(kafka)
    except (NoBroker, KafkaError, OSError) as error:
        report_line(f"not reloaded by the broker: {error}")
        return False
    return True


def main(argv: Sequence[str] | None = None) -> None:
    """Renew at the start and once a day until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m infra.supervisor.renewal")
    parser.add_argument("folder", type=Path, help="folder of the certificates")
    parser.add_argument("--kafka", type=Path, help="data folder of a Kafka that uses them")
    options = parser.parse_args(argv)
    is_due = False
    while True:
        is_due = "broker" in renew(options.folder) or is_due
        if is_due and options.kafka is not None:
            is_due = not reload(options.kafka)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
