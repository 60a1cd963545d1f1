"""`python random_model.py OUT CORPUS`: write a small model of random weights in the form GGUF.

Its tokenizer is trained on the Markdown files below the folder CORPUS. It never samples the end of
an answer, nor a token that is no printable ASCII, so that each answer has as many tokens as its
limit, and each token is a chunk. Runs in an environment with `gguf`, `numpy` and `tokenizers`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

WIDTH, LAYERS, HEADS, KV_HEADS, FEED, VOCABULARY, CONTEXT = 128, 2, 4, 2, 256, 2048, 131_072
"""Shape of a model of 3 MB, which 2 cores run at some thousand tokens per second."""
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
FIRST_CHANNEL = 4.0
"""First channel of each embedding, by which the head can exclude tokens."""
EXCLUDING_WEIGHT = -30.0
"""Weight of that channel in the score of a token that is never sampled."""
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{m['role']}}\n{{m['content']}}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    tokens: list[str]
    merges: list[str]


def train_tokenizer(corpus: Path, saved: Path) -> Vocabulary:
    """Train a byte-level tokenizer and save it as `tokenizers` reads it."""
    library: Any = import_module("tokenizers")
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts(corpus), trainer)
    tokenizer.save(str(saved))
    model = json.loads(saved.read_text())["model"]
    by_number = sorted(model["vocab"].items(), key=lambda item: item[1])
    merges = [item if isinstance(item, str) else " ".join(item) for item in model["merges"]]
    return Vocabulary([token for token, _ in by_number], merges)


def texts(corpus: Path) -> Iterator[str]:
    for path in sorted(corpus.rglob("*.md")):
        yield path.read_text(errors="ignore")


def is_sampled(token: str) -> bool:
    """Return whether the model may answer the token: printable ASCII, or the space's mark."""
    return token not in SPECIAL and all(33 <= ord(c) < 127 or c == "\u0120" for c in token)


class RandomModel:
    """Writes metadata and tensors, with `numpy` and `gguf` of the environment that runs it."""

    def __init__(self, path: Path, vocabulary: Vocabulary) -> None:
        self._gguf: Any = import_module("gguf")
        self._numpy: Any = import_module("numpy")
        self._draw = self._numpy.random.default_rng(0)
        self._vocabulary = vocabulary
        self._writer = self._gguf.GGUFWriter(str(path), "llama")

    def write(self) -> None:
        self._add_shape()
        self._add_tokenizer()
        self._add_tensors()
        self._writer.write_header_to_file()
        self._writer.write_kv_data_to_file()
        self._writer.write_tensors_to_file()
        self._writer.close()

    def _add_shape(self) -> None:
        writer = self._writer
        writer.add_name("random")
        writer.add_context_length(CONTEXT)
        writer.add_embedding_length(WIDTH)
        writer.add_block_count(LAYERS)
        writer.add_feed_forward_length(FEED)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KV_HEADS)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_dimension_count(WIDTH // HEADS)
        writer.add_rope_freq_base(10_000.0)
        writer.add_vocab_size(len(self._vocabulary.tokens))
        writer.add_file_type(0)

    def _add_tokenizer(self) -> None:
        writer, tokens = self._writer, self._vocabulary.tokens
        kinds = self._gguf.TokenType
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(tokens)
        writer.add_token_types([kinds.CONTROL if t in SPECIAL else kinds.NORMAL for t in tokens])
        writer.add_token_merges(self._vocabulary.merges)
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(2)
        writer.add_add_bos_token(False)
        writer.add_chat_template(TEMPLATE)

    def _add_tensors(self) -> None:
        tokens = self._vocabulary.tokens
        embedding = self._random(len(tokens), WIDTH, scale=1.0)
        embedding[:, 0] = FIRST_CHANNEL
        self._writer.add_tensor("token_embd.weight", embedding)
        for layer in range(LAYERS):
            self._add_layer(f"blk.{layer}.")
        self._writer.add_tensor("output_norm.weight", self._ones())
        head = self._random(len(tokens), WIDTH)
        head[:, 0] = [0.0 if is_sampled(token) else EXCLUDING_WEIGHT for token in tokens]
        self._writer.add_tensor("output.weight", head)

    def _add_layer(self, prefix: str) -> None:
        keys = KV_HEADS * WIDTH // HEADS
        output, down = self._random(WIDTH, WIDTH), self._random(WIDTH, FEED)
        # Layers add nothing to the first channel, so that the head finds it as it was embedded.
        output[0] = down[0] = 0
        tensors = {
            "attn_norm": self._ones(),
            "attn_q": self._random(WIDTH, WIDTH),
            "attn_k": self._random(keys, WIDTH),
            "attn_v": self._random(keys, WIDTH),
            "attn_output": output,
            "ffn_norm": self._ones(),
            "ffn_gate": self._random(FEED, WIDTH),
            "ffn_up": self._random(FEED, WIDTH),
            "ffn_down": down,
        }
        for name, tensor in tensors.items():
            self._writer.add_tensor(f"{prefix}{name}.weight", tensor)

    def _ones(self) -> Any:
        return self._numpy.ones(WIDTH, self._numpy.float32)

    def _random(self, *shape: int, scale: float | None = None) -> Any:
        scale = scale or shape[-1] ** -0.5
        return (self._draw.standard_normal(shape) * scale).astype(self._numpy.float32)


def main(out: Path, corpus: Path) -> None:
    RandomModel(out, train_tokenizer(corpus, out.with_suffix(".tokenizer.json"))).write()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
