"""The beginning of an id stands for the job, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from cli.api.http import Api
from cli.api.ids import job_id
from cli.api.target import Target
from cli.errors import BadInput, NotFound
from tests.serving import Quiet, serving

ONE = "0a1b2c3d-0000-5000-8000-000000000001"
TWO = "0a1bffff-0000-5000-8000-000000000002"


class Gateway(Quiet):
    """Has two jobs."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        [prefix] = parse_qs(urlsplit(self.path).query)["id"]
        rows = [{"job_id": job, "name": "train"} for job in (ONE, TWO) if job.startswith(prefix)]
        self.answer(200, json.dumps({"items": rows}).encode())


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setattr(Gateway, "asked", [])
    with serving(Gateway) as url:
        yield Api(Target(url, ""))


@pytest.mark.parametrize(
    ("word", "job"), [("0a1b2", ONE), ("0a1b2c3d-0000", ONE), ("0a1bf.17", f"{TWO}.17")]
)
def test_the_beginning_of_one_id_is_that_job(client: Api, word: str, job: str) -> None:
    assert job_id(client, word) == job


@pytest.mark.parametrize("word", [ONE, f"{ONE}.3", "j", "0a1", "my-job", "train.0"])
def test_another_word_is_taken_as_it_is_without_a_request(client: Api, word: str) -> None:
    assert job_id(client, word) == word
    assert Gateway.asked == []


def test_several_candidates_are_listed_and_none_is_an_error(client: Api) -> None:
    with pytest.raises(
        BadInput, match=rf"ambiguous: 0a1b begins {ONE} \(train\), {TWO} \(train\);"
    ):
        job_id(client, "0a1b")
    with pytest.raises(NotFound, match="no job has an id that begins with ffff"):
        job_id(client, "ffff")
