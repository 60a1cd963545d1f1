"""The addresses of an installation in a cluster are noted as those of a stack."""

from __future__ import annotations

from pathlib import Path

from infra.kubernetes.connect import main
from infra.security import kafka_users
from infra.supervisor.running import load


def test_the_operator_reaches_kafka_and_the_gateway(tmp_path: Path) -> None:
    secrets, data = tmp_path / "secrets", tmp_path / "data"
    kafka_users.make(secrets, ["operator"])
    files = {name: tmp_path / name for name in ("kafka.crt", "api.crt")}
    words = ["--data", data, "--secrets", secrets, "--kafka", "kafka.site:9093", "--kafka-ca"]
    words += [files["kafka.crt"], "--gateway", "https://berth.site", "--ca", files["api.crt"]]
    words += ["--archive", "s3://ledgers/berth"]
    main([str(word) for word in words])
    stack = load(data)
    connection = stack.connection("operator")
    assert (connection.servers, connection.user) == ("kafka.site:9093", "operator")
    assert connection.ca == files["kafka.crt"] and stack.is_broker_external
    assert stack.archive == "s3://ledgers/berth"
    assert (stack.gateway, stack.ca, stack.ports) == ("https://berth.site", files["api.crt"], {})
