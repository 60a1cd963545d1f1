"""The API reference shows every route and type, and loads nothing."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser

from services.gateway.responses.reference import render
from tests.services.gateway.answers import document, operations

LOADED = {"src", "srcset", "data", "action", "poster", "background"}


class Attributes(HTMLParser):
    """Collects the attributes of all elements, and ids and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


@cache
def whole() -> Attributes:
    return Attributes(render(document()))


def test_it_shows_every_route_and_type() -> None:
    for operation in operations():
        assert f"{operation.method}{operation.path}" in whole().text
    assert "GET/v1/jobs/{job_id}/whyExplain why the job waited" in whole().text
    for name in document()["components"]["schemas"]:
        assert ("details", "id", f"type-{name}") in whole().attributes


def test_it_refers_to_no_other_address_and_loads_nothing() -> None:
    assert not [one for one in whole().attributes if one[0] in ("script", "link", "iframe")]
    assert not [one for one in whole().attributes if one[1] in LOADED]
    links = {value for _, name, value in whole().attributes if name == "href"}
    assert all(link.startswith("#") or link == "/openapi.json" for link in links)
    assert not re.search(r"url\(|@import", render(document()))


def test_every_link_has_an_end() -> None:
    ids = {f"#{value}" for _, name, value in whole().attributes if name == "id"}
    links = {value for _, name, value in whole().attributes if name == "href"}
    assert links - {"/openapi.json"} <= ids


def test_text_is_escaped() -> None:
    hostile = {"description": "<script>`<b>`", "responses": {}}
    page = render(
        {
            "info": {"description": "<i>"},
            "paths": {"/<x>": {"get": hostile}},
            "components": {"schemas": {}},
        }
    )
    assert "<script>" not in page and "<b>" not in page and "<i>" not in page and "<x>" not in page


def test_probes_come_after_what_people_call() -> None:
    sections = [value for tag, name, value in whole().attributes if (tag, name) == ("h2", "id")]
    assert sections.index("jobs") < sections.index("probes") == len(sections) - 2
