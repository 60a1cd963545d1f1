"""Names of gangs in Ray: one per identity, and fit for a path of a URL and for a folder."""

from __future__ import annotations

from urllib.parse import quote

from services.executor.core.ray.names import ref_of, submission_id


def test_a_name_is_a_part_of_a_path_as_it_is() -> None:
    name = submission_id(ref_of("berth:here:gpu-1:1/5/0"), 3)
    assert name == "berth~here~gpu-1~1-5-0.3" and quote(name, safe="") == name


def test_two_gangs_have_two_names() -> None:
    places = ("berth:a:b:1/5/0", "berth:a:b:1/50/0", "berth:a-b:c:1/5/0", "berth:a:b-c:1/5/0")
    assert len({ref_of(place) for place in places}) == len(places)
