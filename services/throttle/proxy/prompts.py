"""Counts the tokens of a prompt, by the endpoint's tokenizer or as its engines counted them."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import NamedTuple

from services.throttle.relay.answer_tokens import AnswerTokens
from services.throttle.relay.prompt_size import PromptSize, prompt_size
from services.throttle.relay.prompt_text import prompt_text
from services.throttle.relay.request import RequestBody
from services.throttle.relay.tokens import MOST_TEXT, BytesPerToken, TokenizerFile, TokenizerMissing
from shared.contracts.endpoints import EndpointConfigured

log = logging.getLogger(__name__)


class PromptTokens(NamedTuple):
    """The tokens of a prompt as they are reserved, and the size that they were derived from."""

    tokens: int
    system_tokens: int
    size: PromptSize


class PromptTokenizer:
    """Estimates by model; an endpoint with a tokenizer file of `folder` is counted exactly."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._estimates: dict[str, BytesPerToken] = {}
        self._answers: dict[str, AnswerTokens] = {}
        self._files: dict[str, TokenizerFile | None] = {}

    async def count(
        self, endpoint: EndpointConfigured, tenant: str, body: RequestBody, size: PromptSize
    ) -> PromptTokens:
        estimated = self._estimated(endpoint.endpoint, tenant, size)
        tokenizer = self._file(endpoint)
        if tokenizer is None or _bytes_of(body) > MOST_TEXT:
            return estimated
        counted = await tokenizer.count(await asyncio.to_thread(prompt_text, body.fields))
        if counted is None:
            return estimated
        tokens = max(1, counted + estimated.size.fixed_tokens)
        return PromptTokens(tokens, min(estimated.system_tokens, tokens), estimated.size)

    def estimate(self, endpoint: str, tenant: str, body: RequestBody) -> PromptTokens:
        """Return the tokens by what the endpoint's engines have counted so far."""
        return self._estimated(endpoint, tenant, prompt_size(body.fields))

    def _estimated(self, endpoint: str, tenant: str, size: PromptSize) -> PromptTokens:
        estimate = self._estimate(endpoint)
        system_tokens = estimate.estimate_system(tenant, size)
        return PromptTokens(estimate.estimate(tenant, size), system_tokens, size)

    def learn(self, endpoint: str, tenant: str, size: PromptSize, tokens: int | None) -> None:
        """Learn from the prompt tokens that an engine counted."""
        self._estimate(endpoint).observe(tenant, size, tokens)

    def answers(self, endpoint: str) -> AnswerTokens:
        """Return what is known of the lengths of the endpoint's answers."""
        return self._answers.setdefault(endpoint, AnswerTokens())

    def _estimate(self, endpoint: str) -> BytesPerToken:
        return self._estimates.setdefault(endpoint, BytesPerToken())

    def _file(self, endpoint: EndpointConfigured) -> TokenizerFile | None:
        name = endpoint.tokenizer
        if name is None or self._folder is None:
            return None
        if name not in self._files:
            self._files[name] = self._load(self._folder / f"{name}.json")
        return self._files[name]

    @staticmethod
    def _load(path: Path) -> TokenizerFile | None:
        try:
            return TokenizerFile(path)
        except TokenizerMissing as error:
            log.warning("tokenizer cannot be used, tokens are estimated: %s", error)
            return None


def _bytes_of(body: RequestBody) -> int:
    return sum(memoryview(value).nbytes for value in body.fields.values())
