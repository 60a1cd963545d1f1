"""The private CA: what it signs is believed, what it did not sign is not, and nothing leaks."""

from __future__ import annotations

import re
import socket
import ssl
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from infra.security import certificates
from infra.security.certificate_files import BadCertificates
from infra.security.certificates import SERVERS, CertificateOptions, make

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ALL = ["ca", *SERVERS]


def talk(folder: Path, server: str, name: str, ca: Path) -> None:
    """A TLS handshake through a socket pair; raises what the client has against the server."""
    ours, theirs = socket.socketpair()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / f"{server}.crt", folder / f"{server}.key")
    client = ssl.create_default_context(cafile=str(ca))
    client.verify_flags |= ssl.VERIFY_X509_STRICT

    def serve() -> None:
        try:
            serving.wrap_socket(theirs, server_side=True).close()
        except (ssl.SSLError, OSError):
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        client.wrap_socket(ours, server_hostname=name).close()
    finally:
        ours.close()
        thread.join()


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


@pytest.mark.parametrize(
    ("server", "names"),
    [(name, ("localhost", "127.0.0.1", "::1", *hosts)) for name, hosts in SERVERS.items()],
)
def test_a_client_that_trusts_the_ca_believes_a_server_by_each_of_its_names(
    tmp_path: Path, server: str, names: tuple[str, ...]
) -> None:
    assert make(tmp_path) == ALL
    for name in names:
        talk(tmp_path, server, name, tmp_path / "ca.crt")
    with pytest.raises(ssl.SSLCertVerificationError):
        talk(tmp_path, server, "elsewhere.example", tmp_path / "ca.crt")


def test_another_ca_is_not_believed(tmp_path: Path) -> None:
    make(tmp_path / "ours")
    make(tmp_path / "others")
    with pytest.raises(ssl.SSLCertVerificationError):
        talk(tmp_path / "ours", "api", "localhost", tmp_path / "others" / "ca.crt")


def test_a_second_run_keeps_valid_certificates_and_renews_those_near_their_end(
    tmp_path: Path,
) -> None:
    assert make(tmp_path, now=NOW) == ALL
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert make(tmp_path, now=NOW + timedelta(days=19)) == []
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert make(tmp_path, now=NOW + timedelta(days=21)) == list(SERVERS)
    assert (tmp_path / "ca.crt").read_bytes() == before["ca.crt"]


def test_a_renewed_ca_keeps_its_key_so_that_the_old_certificate_verifies(tmp_path: Path) -> None:
    make(tmp_path)
    old = tmp_path / "old.crt"
    old.write_bytes((tmp_path / "ca.crt").read_bytes())
    later = datetime.fromtimestamp(time.time(), UTC) + timedelta(days=500)
    assert "ca" in make(tmp_path, now=later)
    assert certificate(tmp_path / "ca.crt").not_valid_after_utc > later + timedelta(days=700)
    make(tmp_path, CertificateOptions(renew=True))
    talk(tmp_path, "broker", "localhost", old)


def test_a_new_authority_signs_everything_anew(tmp_path: Path) -> None:
    make(tmp_path)
    old = tmp_path / "old.crt"
    old.write_bytes((tmp_path / "ca.crt").read_bytes())
    assert make(tmp_path, CertificateOptions(new_ca=True)) == ALL
    talk(tmp_path, "api", "localhost", tmp_path / "ca.crt")
    with pytest.raises(ssl.SSLCertVerificationError):
        talk(tmp_path, "api", "localhost", old)


def test_another_name_makes_the_servers_anew(tmp_path: Path) -> None:
    make(tmp_path)
    options = CertificateOptions(hosts=("berth.example", "10.0.0.7"))
    assert make(tmp_path, options) == list(SERVERS)
    talk(tmp_path, "api", "berth.example", tmp_path / "ca.crt")
    talk(tmp_path, "api", "10.0.0.7", tmp_path / "ca.crt")
    assert make(tmp_path, options) == []


def test_a_renewal_without_names_keeps_those_of_the_present_certificates(tmp_path: Path) -> None:
    make(tmp_path, CertificateOptions(hosts=("10.0.0.5",)))
    assert make(tmp_path) == []
    make(tmp_path, CertificateOptions(renew=True))
    talk(tmp_path, "api", "10.0.0.5", tmp_path / "ca.crt")
    make(tmp_path, CertificateOptions(hosts=("10.0.0.6",)))
    talk(tmp_path, "api", "10.0.0.6", tmp_path / "ca.crt")
    with pytest.raises(ssl.SSLCertVerificationError):
        talk(tmp_path, "api", "10.0.0.5", tmp_path / "ca.crt")


def test_no_key_can_be_read_by_others(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    make(folder)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes.pop("ca.key") == 0o400
    assert {modes.pop("ca.crt"), *(modes.pop(f"{s}.crt") for s in SERVERS)} == {0o644}
    assert set(modes) == {f"{s}.{kind}" for s in SERVERS for kind in ("key", "pem")}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_bundle_is_the_key_and_the_certificate(tmp_path: Path) -> None:
    make(tmp_path)
    bundle = (tmp_path / "broker.pem").read_text()
    assert re.findall(r"-----BEGIN (.*)-----", bundle) == ["PRIVATE KEY", "CERTIFICATE"]
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "broker.pem")


def test_only_the_broker_may_call_with_its_certificate(tmp_path: Path) -> None:
    make(tmp_path)
    purposes = {
        server: {
            use._name
            for use in certificate(tmp_path / f"{server}.crt")
            .extensions.get_extension_for_class(x509.ExtendedKeyUsage)
            .value
        }
        for server in SERVERS
    }
    assert purposes == {
        "broker": {"serverAuth", "clientAuth"},
        "api": {"serverAuth"},
        "postgres": {"serverAuth"},
    }


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("ca.key", b"", "no PEM key"),
        ("ca.crt", b"not a certificate", "no PEM certificate"),
        ("api.key", b"-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----\n", "no PEM key"),
        ("broker.crt", b"\xff\x00", "no PEM certificate"),
    ],
)
def test_a_broken_file_is_named_and_left_alone(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    make(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadCertificates, match=f"{name}: {says}") as refused:
        make(tmp_path)
    assert "\n" not in str(refused.value)
    assert (tmp_path / name).read_bytes() == content


def test_a_lost_key_of_the_ca_is_not_replaced_unasked(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "ca.key").unlink()
    with pytest.raises(BadCertificates, match="--new-ca"):
        make(tmp_path)
    assert make(tmp_path, CertificateOptions(new_ca=True)) == ALL


def test_a_pair_that_does_not_match_is_refused(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "api.crt").write_bytes((tmp_path / "postgres.crt").read_bytes())
    with pytest.raises(BadCertificates, match=r"api\.crt: belongs to another key"):
        make(tmp_path)


@pytest.mark.parametrize("missing", ["api.key", "api.crt", "api.pem"])
def test_a_server_that_lacks_a_file_is_made_anew(tmp_path: Path, missing: str) -> None:
    make(tmp_path)
    (tmp_path / missing).unlink()
    assert make(tmp_path) == ["api"]


@pytest.mark.parametrize("host", ["", "UPPER", "a b", "-a", "a..b", "*.example", "x" * 64, "a/b"])
def test_a_bad_host_name_is_refused_before_anything_is_written(tmp_path: Path, host: str) -> None:
    with pytest.raises(BadCertificates, match="--host"):
        make(tmp_path / "new", CertificateOptions(hosts=(host,)))
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadCertificates, match=r"file/below"):
        make(tmp_path / "file" / "below")


def test_many_at_once_agree_on_one_authority(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        written = list(pool.map(lambda _: make(tmp_path), range(6)))
    assert sorted(map(len, written)) == [0, 0, 0, 0, 0, len(ALL)]


def test_the_command_lists_its_files_and_shows_no_key(tmp_path: Path) -> None:
    printed: list[str] = []
    certificates.main(["--out", str(tmp_path)], printed.append)
    certificates.main(["--out", str(tmp_path)], printed.append)
    assert [line.split("\t")[0] for line in printed] == ALL * 2
    assert ["made" in line for line in printed] == [True] * 4 + [False] * 4
    assert "PRIVATE" not in "".join(printed)
