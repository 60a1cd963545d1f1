"""Upstreams on the command line, and what is wrong with one."""

from __future__ import annotations

import pytest

from cli.errors import BadInput
from cli.input.upstreams import changed_upstreams, parse_upstream

A: dict[str, object] = {"name": "a", "url": "http://a:1", "drained": True}


def test_an_upstream_has_an_address_and_more() -> None:
    assert parse_upstream("a=http://a:1") == {"name": "a", "url": "http://a:1"}
    text = "a=http://a:1/base,model=org/M,key=secret,max_requests=8,weight=0.5"
    more = {"model": "org/M", "key": "secret", "max_requests": 8, "weight": 0.5}
    assert parse_upstream(text) == {"name": "a", "url": "http://a:1/base", **more}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("http://a:1", r"upstream: 'http://a:1'; NAME=URL\[,model=M\]"),
        ("a=", "upstream: 'a='; NAME=URL"),
        ("=http://a:1", "NAME=URL"),
        ("a=http://a:1,drained=true", "upstream a: 'drained=true'; one of model, key, "),
        ("a=http://a:1,model=", "upstream a: 'model='"),
        ("a=http://a:1,model=b,model=c", "upstream a: 'model=c'"),
        ("a=http://a:1,weight=much", "upstream a: weight: 'much'; a number is allowed"),
    ],
)
def test_a_wrong_upstream_is_explained(text: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        parse_upstream(text)


def test_an_upstream_is_added_replaced_or_removed() -> None:
    b = {"name": "b", "url": "http://b:1"}
    assert changed_upstreams([A], ["b=http://b:1"]) == [A, b]
    assert changed_upstreams([A], ["a=http://c:1"]) == [{"name": "a", "url": "http://c:1"}]
    assert changed_upstreams([A], ["b=http://b:1"], ["a"]) == [b]
    with pytest.raises(BadInput, match="no such upstream: c; a is allowed"):
        changed_upstreams([A], [], ["c"])
    with pytest.raises(BadInput, match="given twice: upstream b"):
        changed_upstreams([A], ["b=http://b:1", "b=http://b:2"])


@pytest.mark.parametrize("url", ["http://a:1/v1", "http://a:1/v1/"])
def test_an_address_with_the_version_of_the_api_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="the address without /v1 is allowed"):
        parse_upstream(f"a={url}")
