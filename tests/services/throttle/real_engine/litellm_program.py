"""`python litellm_program.py URL KEY MODEL CASE`: one case of LiteLLM as a client, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

litellm: Any = import_module("litellm")
HELLO: list[Any] = [{"role": "user", "content": "hello"}]
LONG = 4000
Options = dict[str, Any]


def chat(options: Options) -> dict[str, Any]:
    answer = litellm.completion(messages=HELLO, max_tokens=12, **options)
    return {"text": answer.choices[0].message.content, "tokens": answer.usage.completion_tokens}


def stream(options: Options) -> dict[str, Any]:
    chunks = litellm.completion(messages=HELLO, max_tokens=12, stream=True, **options)
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks]
    return {"text": "".join(pieces)}


def cancel(options: Options) -> dict[str, Any]:
    """Leave a stream behind its first chunks: the process ends."""
    chunks = litellm.completion(messages=HELLO, max_tokens=LONG, stream=True, **options)
    return {"chunks": len([next(chunks) for _ in range(3)])}


def error(options: Options) -> dict[str, Any]:
    codes = []
    for model, text in (("openai/no/such-model", "hello"), (options["model"], "word " * 6000)):
        try:
            messages = [{"role": "user", "content": text}]
            litellm.completion(**{**options, "model": model}, messages=messages, max_tokens=4)
        except litellm.exceptions.APIError as refused:
            codes.append([type(refused).__name__, refused.status_code])
        except (litellm.BadRequestError, litellm.NotFoundError) as refused:
            codes.append([type(refused).__name__, refused.status_code])
    return {"errors": codes}


def retry(options: Options) -> dict[str, Any]:
    answer = litellm.completion(messages=HELLO, max_tokens=4, max_retries=10, **options)
    return {"status": 200, "tokens": answer.usage.completion_tokens}


def embeddings(options: Options) -> dict[str, Any]:
    vectors = litellm.embedding(input=["one", "another text"], encoding_format="float", **options)
    return {"vectors": [len(item["embedding"]) for item in vectors.data]}


CASES: dict[str, Callable[[Options], dict[str, Any]]] = {
    case.__name__: case for case in (chat, stream, cancel, error, retry, embeddings)
}


def main(url: str, key: str, model: str, case: str) -> None:
    options = {"model": f"openai/{model}", "api_base": url, "api_key": key, "timeout": 60}
    sys.stdout.write("\n" + json.dumps(CASES[case](options)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:5])
