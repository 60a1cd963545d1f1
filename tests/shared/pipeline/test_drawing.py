"""The drawing is well-formed SVG with a box per operation."""

from __future__ import annotations

from xml.etree import ElementTree

from shared.pipeline.drawing import COLOURS, draw
from shared.pipeline.schedules import plan
from tests.shared.pipeline.pipelines import balanced

SVG = "{http://www.w3.org/2000/svg}"


def test_each_operation_has_its_box() -> None:
    pipeline = balanced(3, 4, [0, 30])
    root = ElementTree.fromstring(draw([plan(pipeline, "zb_h2"), plan(pipeline, "adapted")]))
    boxes = [box for box in root.iter(f"{SVG}rect") if box.find(f"{SVG}title") is not None]
    assert len(boxes) == 2 * 3 * 3 * 4
    assert {box.get("fill") for box in boxes} == set(COLOURS.values())
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert any(text.startswith("adapted: ") for text in texts)
    width = float(root.get("width", "0"))
    assert all(float(box.get("x", "0")) + float(box.get("width", "0")) <= width for box in boxes)
