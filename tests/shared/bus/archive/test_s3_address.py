from __future__ import annotations

from pathlib import Path

import pytest

from shared.bus.archive.s3_address import BadArchiveAddress, S3Address, parse_s3, same_place


def test_an_address_has_a_bucket_a_prefix_and_a_way_to_them() -> None:
    assert parse_s3("s3://bucket") == S3Address("bucket", "")
    assert parse_s3(
        "s3://bucket/berth/a/?region=eu-west-1&endpoint=https://s3.example:9000"
        "&credentials=/etc/berth/s3&profile=berth&ca=/etc/berth/ca.pem"
    ) == S3Address(
        "bucket",
        "berth/a",
        "eu-west-1",
        "https://s3.example:9000",
        Path("/etc/berth/s3"),
        "berth",
        Path("/etc/berth/ca.pem"),
    )


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("s3://", "must be s3://BUCKET/PREFIX"),
        ("s3://key:secret@bucket/p", "with credentials in a file"),
        ("s3://bucket:80/p", "must be s3://BUCKET/PREFIX"),
        ("s3://bucket/p?regions=a", "regions=: must be one of region, endpoint"),
        ("s3://bucket/p?region", "bad query field"),
        ("s3://bucket/p#a", "must be one of"),
        ("s3://bucket?endpoint=http://minio:9000", "must be https://..., or http:// on loopback"),
        ("s3://bucket?endpoint=http://10.0.0.1", "must be https://..., or http:// on loopback"),
        ("s3://bucket?endpoint=minio", "must be https"),
        ("s3://bucket?credentials=s3.ini", "credentials=s3.ini: must be an absolute path"),
        ("s3://[bucket/p", "Invalid IPv6"),
        ("s3://bucket?endpoint=https://[x", "Invalid IPv6"),
        ("s3://bucket?endpoint=https://a:b@host", "must have no user and no password"),
        ("s3://bucket?credentials=", "credentials=.: must be an absolute path"),
    ],
)
def test_another_address_is_refused_with_the_rule(address: str, rule: str) -> None:
    with pytest.raises(BadArchiveAddress, match=rule):
        parse_s3(address)


def test_a_secret_in_an_address_is_not_repeated() -> None:
    with pytest.raises(BadArchiveAddress) as raised:
        parse_s3("s3://key:hidden@bucket/p")
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "localhost", "[::1]:9000"])
def test_a_server_on_this_machine_needs_no_tls(host: str) -> None:
    assert parse_s3(f"s3://bucket?endpoint=http://{host}").allows_http


def test_credentials_are_read_as_by_the_tools_of_aws(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(
        "[default]\naws_access_key_id = A%1\naws_secret_access_key = B\nregion = x\n"
        "[short]\naws_access_key_id = C\naws_secret_access_key = D\naws_session_token = E\n"
        "[half]\naws_access_key_id = F\n"
    )
    address = parse_s3(f"s3://bucket?credentials={file}")
    assert address.read_credentials() == {"access_key_id": "A%1", "secret_access_key": "B"}
    short = parse_s3(f"s3://bucket?credentials={file}&profile=short")
    assert short.read_credentials()["session_token"] == "E"
    for profile, text in (("half", "has no aws_secret_access_key"), ("none", r"has no \[none\]")):
        with pytest.raises(BadArchiveAddress, match=text):
            parse_s3(f"s3://bucket?credentials={file}&profile={profile}").read_credentials()
    file.write_text("A B")
    with pytest.raises(BadArchiveAddress, match="not a credentials file of AWS"):
        address.read_credentials()
    assert parse_s3("s3://bucket").read_credentials() == {}


def test_one_place_can_be_reached_in_several_ways() -> None:
    assert same_place("s3://bucket/a/", "s3://bucket/a?credentials=/etc/s3")
    assert not same_place("s3://bucket/a", "s3://bucket/b")
    assert not same_place("s3://bucket/a", "s3://bucket/a?endpoint=https://other")
    assert same_place("/srv/a", "/srv/a")
    assert not same_place("/srv/a", "s3://bucket/a")
