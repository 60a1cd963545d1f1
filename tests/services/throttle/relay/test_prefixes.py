"""Prompts that begin alike have the same first hashes."""

from __future__ import annotations

from msgspec import Raw

from services.throttle.relay.prefixes import prefix_hashes

KEY = b"key"


def hashes(text: str, **fields: Raw) -> tuple[str, ...]:
    return prefix_hashes({"messages": Raw(text.encode()), **fields}, KEY)


def test_prompts_share_the_hashes_of_their_common_beginning() -> None:
    first = hashes("x" * 2048 + "a" * 2000)
    other = hashes("x" * 2048 + "b" * 2000)
    assert len(first) == len(other) == 3
    assert first[:2] == other[:2]
    assert first[2] != other[2]


def test_a_hash_covers_all_before_it_and_only_whole_blocks_count() -> None:
    assert set(hashes("a" * 1024 + "x" * 1024)).isdisjoint(hashes("b" * 1024 + "x" * 1024))
    assert hashes("x" * 1023) == ()
    assert len(hashes("x" * 1024)) == 1


def test_tools_come_first() -> None:
    tools = Raw(b"t" * 1024)
    assert hashes("a" * 1024, tools=tools)[0] == hashes("b" * 1024, tools=tools)[0]


def test_hashes_are_bounded_and_depend_on_the_key() -> None:
    long = {"prompt": Raw(b"x" * 10_000_000)}
    assert len(prefix_hashes(long, KEY)) == 64
    assert len(prefix_hashes(long, KEY, block_bytes=100, most_blocks=3)) == 3
    assert set(prefix_hashes(long, KEY)).isdisjoint(prefix_hashes(long, b"other"))
    assert all(len(item) == 18 for item in prefix_hashes(long, KEY))
