"""The folder that the containers mount is made once, and an address in S3 holds there and here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from infra.compose import archive, project
from infra.machine.process import DidNotStart
from shared.bus.archive.s3_address import parse_s3


def settings(folder: Path, **more: str) -> dict[str, str]:
    secrets = str(folder.parent / "secrets")
    return {"ARCHIVE": "/archive", "ARCHIVE_FOLDER": str(folder), "SECRETS": secrets, **more}


def in_s3(folder: Path, query: str = "credentials=/run/archive/s3&region=r1") -> dict[str, str]:
    """Return settings of an archive in S3 whose credentials are where the containers read them."""
    given = folder.parent / "secrets" / "archive"
    given.mkdir(parents=True, exist_ok=True)
    (given / "s3").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    return settings(folder, ARCHIVE=f"s3://bucket/one?{query}")


def test_variables_of_the_project_name_none() -> None:
    variables = project.variables()
    assert (variables["ARCHIVE"], variables["RECORDS_D"]) == ("", "0")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_the_folder_is_an_archive_of_the_containers_user(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    assert archive.claim(settings(folder, ARCHIVE="")) == ""
    assert folder.is_dir() and not any(folder.iterdir())
    assert archive.claim(settings(folder)) == str(folder) == archive.claim(settings(folder))
    assert {path.stat().st_uid for path in (folder, *folder.iterdir())} == {archive.USER}


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    with pytest.raises(DidNotStart, match="ARCHIVE_FOLDER: .*not empty"):
        archive.claim(settings(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_a_folder_that_is_not_mounted_any_more_is_no_new_archive(tmp_path: Path) -> None:
    known = archive.claim(settings(tmp_path / "archive"))
    os.rename(known, tmp_path / "elsewhere")
    with pytest.raises(DidNotStart, match="ARCHIVE_FOLDER: .*no archive: it has no file"):
        archive.claim(settings(tmp_path / "archive"), known)


def test_the_archive_of_a_project_stays(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    for other in ("", "s3://bucket/two"):
        with pytest.raises(DidNotStart, match=f"ARCHIVE={other}: .* stays s3://bucket/one"):
            archive.claim(settings(folder, ARCHIVE=other), "s3://bucket/one")
    with pytest.raises(DidNotStart, match="ARCHIVE=/data/a: must be empty, /archive, or s3://"):
        archive.claim(settings(folder, ARCHIVE="/data/a"))


def test_files_of_an_address_are_read_here_where_the_containers_have_them_mounted(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a b&c" / "archive"
    here = parse_s3(archive.claim(in_s3(folder)))
    assert here.credentials == folder.parent / "secrets" / "archive" / "s3"
    assert here.read_credentials() and here.region == "r1"
    assert archive.claim(in_s3(folder), "s3://bucket/one?region=r0").startswith("s3://bucket/one?")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("credentials=/etc/berth/s3", "credentials=/etc/berth/s3: must be in /run/archive, which"),
        ("ca=/run/archive/missing", "ca: .*/secrets/archive/missing: is no file"),
        ("endpoint=http://127.0.0.1:9000", "no container reaches this loopback"),
        ("bucket=b", "[?]bucket=: must be one of"),
    ],
)
def test_an_address_that_the_containers_cannot_use_is_refused(
    tmp_path: Path, query: str, message: str
) -> None:
    with pytest.raises(DidNotStart, match=f"ARCHIVE: .*{message}"):
        archive.claim(in_s3(tmp_path / "archive", query))


def test_credentials_that_the_containers_cannot_read_are_refused(tmp_path: Path) -> None:
    given = in_s3(tmp_path / "archive")
    (tmp_path / "secrets" / "archive" / "s3").chmod(0o600)
    with pytest.raises(DidNotStart, match="user 10001 cannot read it: chmod a[+]r"):
        archive.claim(given)
