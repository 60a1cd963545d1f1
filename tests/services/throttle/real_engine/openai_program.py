"""`python openai_program.py URL KEY MODEL CASE`: one case of the official client, as JSON.

Runs with the 2.x and the 3.x of the client, which need no option to work with the proxy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import openai

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
LONG = 4000


def chat(client: openai.OpenAI, model: str) -> dict[str, Any]:
    answer = client.chat.completions.create(model=model, messages=HELLO, max_tokens=12)
    assert answer.usage is not None
    return {"text": answer.choices[0].message.content, "tokens": answer.usage.completion_tokens}


def stream(client: openai.OpenAI, model: str) -> dict[str, Any]:
    chunks = list(
        client.chat.completions.create(
            model=model,
            messages=HELLO,
            max_tokens=12,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    usage = chunks[-1].usage
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    return {"text": "".join(pieces), "tokens": usage.completion_tokens if usage else None}


def cancel(client: openai.OpenAI, model: str) -> dict[str, Any]:
    """Leave a stream behind its first chunks."""
    answer = client.chat.completions.create(
        model=model, messages=HELLO, max_tokens=LONG, stream=True
    )
    seen = [next(iter(answer)) for _ in range(3)]
    answer.close()
    return {"chunks": len(seen)}


def error(client: openai.OpenAI, model: str) -> dict[str, Any]:
    """Name a model that does not exist, and a prompt that the engine refuses."""
    codes = []
    for name, text in (("no/such-model", "hello"), (model, "word " * 6000)):
        try:
            client.chat.completions.create(
                model=name, messages=[{"role": "user", "content": text}], max_tokens=4
            )
        except openai.APIStatusError as refused:
            codes.append([type(refused).__name__, refused.status_code])
    return {"errors": codes}


def retry(client: openai.OpenAI, model: str) -> dict[str, Any]:
    """Retry by itself until there is room in the queue."""
    patient = client.with_options(max_retries=10)
    raw = patient.chat.completions.with_raw_response.create(
        model=model, messages=HELLO, max_tokens=4
    )
    return {"retries": raw.retries_taken, "status": raw.http_response.status_code}


def embeddings(client: openai.OpenAI, model: str) -> dict[str, Any]:
    vectors = client.embeddings.create(model=model, input=["one", "another text"])
    return {"vectors": [len(item.embedding) for item in vectors.data]}


CASES: dict[str, Callable[[openai.OpenAI, str], dict[str, Any]]] = {
    case.__name__: case for case in (chat, stream, cancel, error, retry, embeddings)
}


def main(url: str, key: str, model: str, case: str) -> None:
    with openai.OpenAI(base_url=url, api_key=key, timeout=60) as client:
        result = CASES[case](client, model)
    sys.stdout.write(json.dumps({**result, "version": openai.__version__}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:5])
