"""Addresses of an external Kafka and Postgres: which are accepted, and where their secrets go."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from infra.postgres.server import GATEWAY, PROJECTOR
from infra.security import certificates, kafka_users, rights
from infra.supervisor.external import BadExternal, read_kafka, read_postgres, role_address
from shared.projections.roles import credentials

REMOTE = "db.example:5432/berth?sslmode=verify-full&sslrootcert=/etc/ca.crt"
PASSWORD = "a:b\\c@d"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Return the variables that name a CA and a folder of passwords."""
    certificates.make(tmp_path / "certificates")
    kafka_users.make(tmp_path / "secrets", rights.users())
    ca = tmp_path / "certificates" / "ca.crt"
    return {"BERTH_KAFKA_CA": str(ca), "BERTH_KAFKA_SECRETS": str(tmp_path / "secrets")}


def test_a_kafka_has_a_ca_and_a_password_of_each_user(files: dict[str, str]) -> None:
    kafka = read_kafka("a.example:9093,b.example:9093", files)
    assert kafka.servers == "a.example:9093,b.example:9093"
    assert (str(kafka.ca), str(kafka.secrets)) == tuple(files.values())


@pytest.mark.parametrize("servers", ["redis", "a.example", "a.example:9093,", "a:b"])
def test_a_broker_is_embedded_kafka_or_an_address(servers: str, files: dict[str, str]) -> None:
    with pytest.raises(BadExternal, match="must be embedded, kafka or HOST:PORT"):
        read_kafka(servers, files)


@pytest.mark.parametrize("name", ["BERTH_KAFKA_CA", "BERTH_KAFKA_SECRETS"])
def test_a_missing_variable_is_named(name: str, files: dict[str, str]) -> None:
    with pytest.raises(BadExternal, match=f"a.example:9093: {name} is not set"):
        read_kafka("a.example:9093", files | {name: ""})


def test_a_missing_password_is_named(files: dict[str, str]) -> None:
    path = kafka_users.path_of(Path(files["BERTH_KAFKA_SECRETS"]), "placement")
    path.unlink()
    with pytest.raises(kafka_users.NoPassword, match="kafka_placement: No such file"):
        read_kafka("a.example:9093", files)


def test_a_ca_that_is_no_certificate_is_named(files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    with pytest.raises(BadExternal, match=r"BERTH_KAFKA_CA=.*empty: holds no usable PEM"):
        read_kafka("a.example:9093", files | {"BERTH_KAFKA_CA": str(tmp_path / "empty")})


def test_the_password_of_a_file_goes_to_a_file_that_the_address_names(tmp_path: Path) -> None:
    (tmp_path / "address").write_text(f"postgresql://own%20er:a%3Ab%5Cc%40d@{REMOTE}\n")
    postgres = read_postgres(str(tmp_path / "address"))
    assert (postgres.user, postgres.password) == ("own er", PASSWORD)
    assert "a%3Ab" not in postgres.address
    folder = tmp_path / "passwords"
    postgres.store(folder)
    path = folder / "own%20er"
    assert path.read_text() == "*:*:*:own er:a\\:b\\\\c@d\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    named = f"&passfile={folder}/own%2520er"
    assert postgres.owner(folder) == f"postgresql://own%20er@{REMOTE}{named}"


def test_each_role_keeps_a_password_of_its_own(tmp_path: Path) -> None:
    address = f"postgresql://berth@{REMOTE}&passfile=/etc/pass"
    postgres = read_postgres(address)
    pairs = []
    for _ in range(2):
        postgres.store(tmp_path)
        addresses = [role_address(address, role, tmp_path) for role in (PROJECTOR, GATEWAY)]
        pairs.append([credentials(text) for text in addresses])
    assert pairs[0] == pairs[1]
    assert [user for user, _ in pairs[0]] == [PROJECTOR, GATEWAY]
    assert len({password for _, password in pairs[0]}) == 2
    assert postgres.owner(tmp_path) == address


def test_a_password_in_an_argument_is_refused_and_not_quoted() -> None:
    with pytest.raises(BadExternal, match="visible to every user") as refused:
        read_postgres(f"postgresql://berth:s3cret@{REMOTE}")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "host", ["db.example/berth?", "db.example/berth?sslmode=require&", "/berth?host=10.0.0.5&"]
)
def test_beyond_the_loopback_the_certificate_is_verified(host: str) -> None:
    with pytest.raises(BadExternal, match=r"cross the network to .*sslmode=verify-full"):
        read_postgres(f"postgresql://berth@{host}passfile=/etc/pass")


@pytest.mark.parametrize("host", ["127.0.0.1:5432/berth?", "localhost/berth?", "/berth?host=/run&"])
def test_on_this_machine_it_need_not_be(host: str) -> None:
    address = f"postgresql://berth@{host}passfile=/etc/pass"
    assert read_postgres(address).address == address


def test_an_address_without_a_password_is_refused() -> None:
    with pytest.raises(BadExternal, match="no password; must be in the file"):
        read_postgres(f"postgresql://berth@{REMOTE}")


def test_what_is_neither_an_address_nor_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadExternal, match="No such file or directory; must be a file, or"):
        read_postgres(str(tmp_path / "missing"))
    (tmp_path / "other").write_text("host=db.example password=s3cret")
    with pytest.raises(BadExternal, match="is no address; must be postgresql://") as refused:
        read_postgres(str(tmp_path / "other"))
    assert "s3cret" not in str(refused.value)
