from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from infra.security import certificates
from shared.process.settings import BadSettings, Settings, read_settings

GIVEN = {"BERTH_KAFKA": "127.0.0.1:9092", "BERTH_DATA": "data", "PATH": "/usr/bin"}


class GatewaySettings(Settings):
    postgres: str
    snapshot_file: str = ""


def test_a_service_reads_its_variables_and_defaults_the_rest() -> None:
    settings = read_settings(
        Settings, GIVEN | {"BERTH_IDEMPOTENT": "0", "BERTH_METRICS_PORT": "9100"}
    )
    assert settings.kafka == "127.0.0.1:9092"
    assert settings.data == Path("data")
    assert (settings.idempotent, settings.metrics_port, settings.partitions) == (False, 9100, 4)


def test_settings_cannot_be_changed_after_the_start() -> None:
    with pytest.raises(ValidationError):
        read_settings(Settings, GIVEN).partitions = 5  # type: ignore[misc]


def test_an_unknown_variable_ends_the_start_and_is_named() -> None:
    with pytest.raises(BadSettings, match="^BERTH_KAFAK: no such setting"):
        read_settings(Settings, GIVEN | {"BERTH_KAFAK": "x"})


def test_the_variable_of_another_service_is_unknown_to_this_one() -> None:
    assert read_settings(GatewaySettings, GIVEN | {"BERTH_POSTGRES": "dsn"}).postgres == "dsn"
    with pytest.raises(BadSettings, match="^BERTH_POSTGRES: no such setting"):
        read_settings(Settings, GIVEN | {"BERTH_POSTGRES": "dsn"})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BERTH_KAFKA", "no port"),
        ("BERTH_PARTITIONS", "0"),
        ("BERTH_METRICS_PORT", "seventy"),
        ("BERTH_OTLP", "127.0.0.1:4318"),
        ("BERTH_IDEMPOTENT", "perhaps"),
        ("BERTH_WINDOW_MS", "-1"),
    ],
)
def test_a_wrong_value_is_named_but_not_repeated(variable: str, value: str) -> None:
    with pytest.raises(BadSettings, match=f"^{variable}: ") as refused:
        read_settings(Settings, GIVEN | {variable: value})
    assert value not in str(refused.value).removeprefix(variable).split()


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(BadSettings, match="^BERTH_DATA: Field required"):
        read_settings(Settings, {"BERTH_KAFKA": "127.0.0.1:9092"})


def test_a_secret_is_read_from_the_file_that_is_named(tmp_path: Path) -> None:
    secret = tmp_path / "dsn"
    secret.write_text("postgresql://berth:s3cret@db/berth\n")
    settings = read_settings(GatewaySettings, GIVEN | {"BERTH_POSTGRES_FILE": str(secret)})
    assert settings.postgres == "postgresql://berth:s3cret@db/berth"


def test_a_setting_with_a_name_that_ends_in_file_is_not_read_from_a_file() -> None:
    given = GIVEN | {"BERTH_POSTGRES": "dsn", "BERTH_SNAPSHOT_FILE": "snapshot.bin"}
    assert read_settings(GatewaySettings, given).snapshot_file == "snapshot.bin"


def test_a_value_beside_its_file_is_refused(tmp_path: Path) -> None:
    given = GIVEN | {"BERTH_POSTGRES": "dsn", "BERTH_POSTGRES_FILE": str(tmp_path / "dsn")}
    (tmp_path / "dsn").write_text("other")
    with pytest.raises(BadSettings, match="given twice"):
        read_settings(GatewaySettings, given)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="^BERTH_POSTGRES_FILE: .*No such file"):
        read_settings(GatewaySettings, GIVEN | {"BERTH_POSTGRES_FILE": str(tmp_path / "none")})


@pytest.mark.process
def test_a_process_with_wrong_settings_ends_with_one_line() -> None:
    code = "import os; from shared.process.settings import *; read_settings(Settings, os.environ)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=GIVEN | {"BERTH_TYPO": "1", "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "BERTH_TYPO: no such setting in shared.process.settings\n"


def test_the_password_of_kafka_comes_from_a_file_and_is_never_shown(tmp_path: Path) -> None:
    secret, ca = tmp_path / "secret", tmp_path / "certificates"
    secret.write_text("a-password-that-must-not-leak\n")
    certificates.make(ca)
    settings = read_settings(
        Settings,
        GIVEN
        | {
            "BERTH_KAFKA_USER": "placement",
            "BERTH_KAFKA_PASSWORD_FILE": str(secret),
            "BERTH_KAFKA_CA": str(ca / "ca.crt"),
        },
    )
    assert settings.connection.password == "a-password-that-must-not-leak"
    assert settings.connection.user == "placement" and settings.connection.protocol == "SASL_SSL"
    shown = repr(settings) + str(settings) + settings.model_dump_json() + repr(settings.connection)
    assert "a-password-that-must-not-leak" not in shown


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"BERTH_KAFKA_USER": "a"}, "BERTH_KAFKA_CA: .*user and its password go together"),
        ({"BERTH_KAFKA_PASSWORD": "hush"}, "BERTH_KAFKA_CA: .*user and its password go together"),
        (
            {"BERTH_KAFKA_USER": "a", "BERTH_KAFKA_PASSWORD": "hush"},
            "BERTH_KAFKA_CA: .*file of the CA is missing",
        ),
        ({"BERTH_KAFKA_CA": "no/such/file"}, "BERTH_KAFKA_CA: .*No such file"),
        ({"BERTH_KAFKA_USER": "a b"}, "BERTH_KAFKA_USER: "),
        ({"BERTH_KAFKA_PASSWORD_FILE": "no/such/file"}, "BERTH_KAFKA_PASSWORD_FILE: "),
    ],
)
def test_credentials_that_are_not_whole_end_the_start(given: dict[str, str], message: str) -> None:
    with pytest.raises(BadSettings, match=message) as refused:
        read_settings(Settings, GIVEN | given)
    assert "hush" not in str(refused.value) and "\n" not in str(refused.value)
