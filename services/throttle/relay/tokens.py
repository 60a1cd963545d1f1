"""Tokens of a prompt before an engine counted them: estimated per model, or by its tokenizer."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import Any

from services.throttle.relay.prompt_size import PromptSize

FIRST_RATIO = 4.0
LEAST_RATIO, MOST_RATIO = 1.0, 12.0
"""Bytes per token that any tenant's text may have: beyond, it counts as the bound."""
LEAST_BYTES = 64
"""Shorter prompts are mostly the engine's template."""
WEIGHT = 0.05
MOST_STEP = 1.1
"""Factor by which one prompt may move its tenant's ratio at most."""
MOST_TENANTS = 64
MOST_TEXT = 256 * 1024
"""Characters that a tokenizer counts, and bytes of a body: more take a thread too long."""


class BytesPerToken:
    """The estimate of one model, learned from the usage that its engine reported.

    Each tenant has an average of its own, moved by little per prompt. The model's ratio is their
    lower median, so that no tenant moves it alone, however many prompts it sends. A tenant whose
    text is denser is estimated by its own average: an estimate never profits from odd text before.
    """

    def __init__(self) -> None:
        self._ratios: OrderedDict[str, float] = OrderedDict()
        self._median = FIRST_RATIO

    @property
    def ratio(self) -> float:
        """Bytes per token of the model."""
        return self._median

    def ratio_of(self, tenant: str) -> float:
        """Bytes per token by which prompts of the tenant are estimated."""
        return min(self._median, self._ratios.get(tenant, self._median))

    def estimate(self, tenant: str, size: PromptSize) -> int:
        """Return the tokens of a prompt, at least 1."""
        return max(1, ceil(size.text_bytes / self.ratio_of(tenant)) + size.fixed_tokens)

    def estimate_system(self, tenant: str, size: PromptSize) -> int:
        """Return the tokens of the part that the application adds."""
        return ceil(size.system_bytes / self.ratio_of(tenant))

    def observe(self, tenant: str, size: PromptSize, prompt_tokens: int | None) -> None:
        """Learn from the prompt tokens of a usage; images and token ids teach nothing."""
        if not prompt_tokens or size.fixed_tokens or size.text_bytes < LEAST_BYTES:
            return
        seen = min(max(size.text_bytes / prompt_tokens, LEAST_RATIO), MOST_RATIO)
        before = self._ratios.pop(tenant, FIRST_RATIO)
        after = before + WEIGHT * (seen - before)
        self._ratios[tenant] = min(max(after, before / MOST_STEP), before * MOST_STEP)
        if len(self._ratios) > MOST_TENANTS:
            self._ratios.popitem(last=False)
        ranked = sorted(self._ratios.values())
        self._median = ranked[(len(ranked) - 1) // 2]


class TokenizerMissing(RuntimeError):
    """A tokenizer cannot be used: its library or its file is missing or invalid."""


class TokenizerFile:
    """Counts tokens exactly, by a `tokenizer.json`; needs the package `tokenizers`."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises TokenizerMissing."""
        try:
            library: Any = import_module("tokenizers")
        except ImportError:
            raise TokenizerMissing("tokenizers: the package is not installed") from None
        try:
            self._tokenizer: Any = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises the base class
            raise TokenizerMissing(f"{path.name}: no tokenizer: {error}") from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    async def count(self, text: str) -> int | None:
        """Return the tokens of a text; None if it is too long to be counted in time.

        A thread counts them. Only for batches the library releases the lock of the interpreter.
        """
        if len(text) > MOST_TEXT:
            return None
        return await asyncio.to_thread(self._count, text)

    def _count(self, text: str) -> int:
        (encoding,) = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)
        return len(encoding)
