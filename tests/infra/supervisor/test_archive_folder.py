from __future__ import annotations

from pathlib import Path

import pytest

from infra.machine.process import DidNotStart
from infra.supervisor.archive_folder import claim_archive
from infra.supervisor.launch import StackOptions
from infra.supervisor.running import Broker, RunningStack, save


def known(data_dir: Path, archive: str, broker: Broker = "kafka") -> None:
    """Store a stack that was started before."""
    save(
        RunningStack(
            data_dir=data_dir,
            broker=broker,
            partitions=1,
            kafka="127.0.0.1:1",
            postgres="",
            gateway="",
            llm="",
            otlp="",
            state=data_dir / "state",
            work=data_dir / "work",
            ports={},
            archive=archive,
        )
    )


def options(archive: Path | str = "", broker: Broker = "kafka") -> StackOptions:
    return StackOptions(broker=broker, archive=str(archive))


def test_a_new_folder_becomes_the_archive_and_stays_it(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    assert claim_archive(tmp_path, options()) == ""
    assert claim_archive(tmp_path, options(folder)) == str(folder)
    known(tmp_path, str(folder))
    assert claim_archive(tmp_path, options()) == str(folder)
    assert claim_archive(tmp_path, options(folder)) == str(folder)


def test_an_archive_cannot_become_another(tmp_path: Path) -> None:
    known(tmp_path, str(tmp_path / "archive"))
    with pytest.raises(DidNotStart, match="cannot become"):
        claim_archive(tmp_path, options(tmp_path / "other"))


def test_an_archive_that_is_away_is_not_made_again(tmp_path: Path) -> None:
    known(tmp_path, str(tmp_path / "archive"))
    with pytest.raises(DidNotStart, match="no file berth-archive"):
        claim_archive(tmp_path, options())
    assert not (tmp_path / "archive").exists()


def test_the_embedded_broker_gets_no_archive(tmp_path: Path) -> None:
    with pytest.raises(DidNotStart, match="embedded broker"):
        claim_archive(tmp_path, options(tmp_path / "archive", "embedded"))
    known(tmp_path, str(tmp_path / "archive"))
    assert claim_archive(tmp_path, options(broker="embedded")) == ""


def test_the_way_to_a_bucket_may_change_and_the_bucket_may_not(tmp_path: Path) -> None:
    known(tmp_path, "s3://bucket/berth?region=eu-west-1")
    moved = "s3://other/berth?region=eu-west-1"
    with pytest.raises(DidNotStart, match="cannot become s3://other/berth"):
        claim_archive(tmp_path, options(moved))
    # The place is the same: what fails is the way to it.
    with pytest.raises(DidNotStart, match=r"credentials=/missing/file: No such file"):
        claim_archive(tmp_path, options("s3://bucket/berth?credentials=/missing/file"))


def test_a_bad_address_is_named_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(DidNotStart, match="archive: .*user=: must be one of region, endpoint"):
        claim_archive(tmp_path, options("s3://bucket/berth?user=a"))


def test_keys_of_the_shell_are_refused_since_services_do_not_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    with pytest.raises(DidNotStart, match="AWS_ACCESS_KEY_ID: does not reach the services"):
        claim_archive(tmp_path, options("s3://bucket/berth"))
