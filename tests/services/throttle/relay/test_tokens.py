"""Bytes per token are learned from usage, and no tenant bends them for the others."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from services.throttle.relay.prompt_size import MEDIA_TOKENS, PromptSize
from services.throttle.relay.tokens import (
    MOST_TENANTS,
    MOST_TEXT,
    BytesPerToken,
    TokenizerFile,
    TokenizerMissing,
)

KILOBYTE = PromptSize(1000)


def taught(**ratios: float) -> BytesPerToken:
    """Return an estimate after many prompts of tenants with these bytes per token."""
    tokens = BytesPerToken()
    for _ in range(200):
        for tenant, ratio in ratios.items():
            tokens.observe(tenant, KILOBYTE, round(1000 / ratio))
    return tokens


def test_before_any_usage_four_bytes_are_a_token() -> None:
    tokens = BytesPerToken()
    assert tokens.estimate("t", PromptSize(400)) == 100
    assert tokens.estimate("t", PromptSize(401)) == 101
    assert tokens.estimate("t", PromptSize(0)) == 1
    assert tokens.estimate("t", PromptSize(4, 10, 2)) == 11 + 2 * MEDIA_TOKENS
    assert tokens.estimate_system("t", PromptSize(400, system_bytes=40)) == 10


def test_the_ratio_of_a_model_is_learned() -> None:
    assert taught(a=5.0, b=5.0, c=5.0).ratio == pytest.approx(5.0, rel=0.01)
    assert taught(a=2.5).ratio == pytest.approx(2.5, rel=0.01)


@pytest.mark.parametrize("lie", [1.0, 1000.0, 0.01])
def test_one_tenant_never_moves_the_ratio_of_the_others(lie: float) -> None:
    tokens = taught(a=4.0, b=4.1, c=3.9)
    for _ in range(10_000):
        tokens.observe("liar", PromptSize(10_000), round(10_000 / lie))
    assert 3.8 < tokens.ratio_of("a") < 4.2


def test_a_tenant_does_not_profit_from_what_it_taught() -> None:
    tokens = taught(a=4.0, b=4.0, c=4.0, sparse=12.0)
    assert tokens.ratio_of("sparse") == pytest.approx(4.0)
    dense = taught(a=4.0, b=4.0, c=4.0, dense=2.0)
    assert dense.ratio_of("dense") == pytest.approx(2.0, rel=0.01)
    assert dense.ratio_of("a") == pytest.approx(4.0)


def test_a_single_prompt_moves_little() -> None:
    tokens = BytesPerToken()
    tokens.observe("t", PromptSize(10**7), 10**7)
    assert 3.6 <= tokens.ratio <= 4.0


@pytest.mark.parametrize(
    ("size", "counted"),
    [
        (PromptSize(1000, media=1), 900),
        (PromptSize(1000, 5), 900),
        (PromptSize(63), 60),
        (KILOBYTE, None),
        (KILOBYTE, 0),
    ],
)
def test_what_shows_no_ratio_teaches_nothing(size: PromptSize, counted: int | None) -> None:
    tokens = BytesPerToken()
    tokens.observe("t", size, counted)
    assert tokens.ratio == 4.0


def test_the_tenants_that_are_kept_are_bounded() -> None:
    tokens = BytesPerToken()
    for number in range(3 * MOST_TENANTS):
        tokens.observe(f"t{number}", KILOBYTE, 900)
    assert tokens.ratio_of("t0") == tokens.ratio


def test_a_tokenizer_without_its_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(TokenizerMissing, match="package is not installed"):
        TokenizerFile(Path("tokenizer.json"))


class Words:
    """Stands for a tokenizer of the package, which is no dependency: a token per word."""

    @staticmethod
    def from_file(path: str) -> Words:
        if not path.endswith(".json"):
            raise ValueError("not JSON")
        return Words()

    def no_truncation(self) -> None:
        pass

    def no_padding(self) -> None:
        pass

    def encode_batch_fast(self, texts: list[str], *, add_special_tokens: bool) -> list[list[str]]:
        assert not add_special_tokens
        return [text.split() for text in texts]


async def test_a_tokenizer_counts_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("tokenizers")
    library.__dict__["Tokenizer"] = Words
    monkeypatch.setitem(sys.modules, "tokenizers", library)
    with pytest.raises(TokenizerMissing, match="x.bin: no tokenizer: not JSON"):
        TokenizerFile(Path("x.bin"))
    tokenizer = TokenizerFile(Path("tokenizer.json"))
    assert await tokenizer.count("three short words") == 3
    assert await tokenizer.count("x" * (MOST_TEXT + 1)) is None
