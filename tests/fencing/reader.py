"""Placement's reader of heartbeats: the real counts of silence, over a log of the test."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.placement.core.pool.node import Node
from services.placement.core.pool.state import Pool
from services.placement.silence import Silence, silence_key
from shared.contracts.reports import Heartbeats, NodesHeard, NodesSilent, SilentNode


@dataclass(slots=True)
class Reader:
    """Counts silence; `heard_of` and `judge` do what `services.placement.heartbeats` does.

    `reads_to_end` and `goes_on` are rules of it; a test may remove them.
    """

    pool: Pool
    log: list[Heartbeats]
    now_s: float
    reads_to_end: bool = True
    goes_on: bool = True
    silence: Silence = field(default_factory=Silence)
    position: int = 0

    def __post_init__(self) -> None:
        offsets = []
        for node in self.nodes():
            if node.silence is not None:
                self.silence.resume(silence_key(node), node.silence, self.now_s)
                offsets.append(node.silence.offset)
        self.silence.watch(map(silence_key, self.nodes()), self.now_s)
        self.position = min([*offsets, len(self.log)]) if self.goes_on else len(self.log)

    def nodes(self) -> list[Node]:
        return [node for node in self.pool.board.nodes.values() if not node.is_over]

    def read(self, most: int, now_s: float) -> None:
        self.silence.watch(map(silence_key, self.nodes()), now_s)
        for offset in range(self.position, min(self.position + most, len(self.log))):
            self.silence.note(offset, self.log[offset], now_s)
            self.position = offset + 1

    def judge(self, now_s: float) -> NodesSilent:
        """Return the silence of all nodes as of now, after reading to the end."""
        if self.reads_to_end:
            self.read(len(self.log), now_s)
        self.silence.watch(map(silence_key, self.nodes()), now_s)
        silent = tuple(self.silent_node(node, now_s) for node in self.nodes())
        return NodesSilent(nodes=silent, offset=self.position)

    def silent_node(self, node: Node, now_s: float) -> SilentNode:
        count = self.silence.of(node.node_id)
        silent_ms = count.silent_ms(now_s)
        self.silence.note_silent(node.node_id, silent_ms)
        return SilentNode(silent_ms=silent_ms, **count.key._asdict())

    def heard_of(self) -> NodesHeard:
        heard = self.silence.take_heard()
        return NodesHeard(
            nodes={
                node.node_id: node.incarnation
                for node in self.nodes()
                if node.silence is not None and silence_key(node) in heard
            }
        )

    def lose_unread(self, now_s: float) -> None:
        """The broker lost what was not read yet, and the reader has noticed it."""
        del self.log[self.position :]
        self.silence.watch(map(silence_key, self.nodes()), now_s)
        self.silence.begin_anew(now_s)
