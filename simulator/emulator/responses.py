"""The form of `/v1/responses`: one message of text, whole or as events of a stream."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.emulator.answers import AnswerHead, Json, Usage, encode, event, filler
from simulator.emulator.batch import AnswerSequence

MESSAGE = "msg_emulated"


class ResponsesForm:
    """See `AnswerForm`. Events are numbered from 0."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._number = 0

    def document(self, sequences: Sequence[AnswerSequence], usage: Usage) -> Json:
        (sequence,) = sequences
        cut = sequence.finish_reason == "length"
        status = "incomplete" if cut else "completed"
        return {
            **self._state(status, [self._message(sequence.made_tokens, status)]),
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "usage": {
                "input_tokens": usage.prompt_tokens,
                "input_tokens_details": {"cached_tokens": usage.cached_tokens},
                "output_tokens": usage.completion_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            },
        }

    def begin(self, choices: int) -> bytes:
        item = {**self._message(0, "in_progress"), "content": []}
        state = self._state("in_progress", [])
        return b"".join(
            (
                self._event("response.created", {"response": state}),
                self._event("response.in_progress", {"response": state}),
                self._event("response.output_item.added", {"output_index": 0, "item": item}),
                self._event("response.content_part.added", {**self._place(), "part": _part(0)}),
            )
        )

    def tokens(self, choice: int, start: int, end: int) -> bytes:
        return b"".join(
            self._event(
                "response.output_text.delta",
                {**self._place(), "delta": filler(number, number + 1), "logprobs": []},
            )
            for number in range(start, end)
        )

    def end(self, sequences: Sequence[AnswerSequence], usage: Usage) -> bytes:
        document = self.document(sequences, usage)
        status, (item,) = document["status"], document["output"]
        tokens = sequences[0].made_tokens
        text = {"text": filler(0, tokens), "logprobs": []}
        return b"".join(
            (
                self._event("response.output_text.done", {**self._place(), **text}),
                self._event("response.content_part.done", {**self._place(), "part": _part(tokens)}),
                self._event("response.output_item.done", {"output_index": 0, "item": item}),
                self._event(f"response.{status}", {"response": document}),
            )
        )

    def _event(self, name: str, fields: Json) -> bytes:
        number, self._number = self._number, self._number + 1
        return event(encode({"type": name, "sequence_number": number, **fields}), name)

    def _state(self, status: str, output: Sequence[Json]) -> Json:
        fields = self._head.fields("response")
        return {
            **fields,
            "created_at": fields["created"],
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "output": output,
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "usage": None,
        }

    def _message(self, tokens: int, status: str) -> Json:
        return {
            "id": MESSAGE,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [_part(tokens)],
        }

    def _place(self) -> Json:
        return {"item_id": MESSAGE, "output_index": 0, "content_index": 0}


def _part(tokens: int) -> Json:
    return {"type": "output_text", "text": filler(0, tokens), "annotations": [], "logprobs": []}
