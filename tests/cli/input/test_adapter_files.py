"""Files of adapters are read, and errors name file, row, field, value and rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.errors import BadInput
from cli.input.adapter_files import RANKS, read_adapters, read_present
from simulator.llm.adapters import engines
from simulator.llm.adapters.loads import AdapterLoad

HEAD = "adapter,rank,rate_per_s,prompt_tokens,output_tokens"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_csv_and_json_are_read_alike(tmp_path: Path) -> None:
    loads = [AdapterLoad("a", 8, 0.5, 100, 50), AdapterLoad("b", 16, 1.0, 200, 60, 2.0)]
    table = f"{HEAD},cv\na,8,0.5,100,50,\nb,16,1,200,60,2\n"
    assert read_adapters(written(tmp_path, "a.csv", table)) == loads
    rows = [
        dict(zip((*HEAD.split(","), "cv"), row, strict=False))
        for row in (("a", 8, 0.5, 100, 50), ("b", 16, 1, 200, 60, 2))
    ]
    assert read_adapters(written(tmp_path, "a.json", json.dumps(rows))) == loads


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,64,1,1,1", "row 2, rank: '64'; one of 8, 16, 32 is allowed"),
        ("a,8,-1,1,1", "row 2, rate_per_s: -1; a number from 1e-06 to 1,000 is allowed"),
        ("a,8,nan,1,1", "row 2, rate_per_s: nan; a number from"),
        ("a,8,x,1,1", "row 2, rate_per_s: 'x'; a number from"),
        ("a,8,1,0,1", "row 2, prompt_tokens: 0; a number from 1 to 131,072 is allowed"),
        ("a,8,1,1,", "row 2, output_tokens: no value; it is required"),
        (",8,1,1,1", "row 2, adapter: no value; it is required"),
        ("a,8,1,1,1\na,8,1,1,1", "row 3, adapter: a; a name that occurs once is allowed"),
        ("a,8,1,1,1,7", "row 2: unknown field: more fields than columns"),
        ("", "no rows; one or more are required"),
    ],
)
def test_errors_of_rows(tmp_path: Path, row: str, message: str) -> None:
    path = written(tmp_path, "a.csv", f"{HEAD}\n{row}\n")
    with pytest.raises(BadInput) as caught:
        read_adapters(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "invalid JSON"),
        ("{}", "a list of objects is allowed"),
        ("[3]", "row 1: 3; an object is allowed"),
        ('[{"adapter": "a", "rank": true}]', "rate_per_s: no value"),
        (
            '[{"adapter": "a", "rank": 8, "rate_per_s": NaN, "prompt_tokens": 1,'
            ' "output_tokens": 1}]',
            "NaN is no number of JSON",
        ),
        (
            '[{"adapter": ["a"], "rank": 8, "rate_per_s": 1, "prompt_tokens": 1,'
            ' "output_tokens": 1}]',
            "adapter: ['a']; printable text",
        ),
        ("[" * 100_000, "invalid JSON"),
    ],
)
def test_errors_of_json(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match="a.json") as caught:
        read_adapters(written(tmp_path, "a.json", text))
    assert message in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="absent.csv: cannot be read"):
        read_adapters(tmp_path / "absent.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="bytes.csv: cannot be read"):
        read_adapters(tmp_path / "bytes.csv")


def test_a_present_plan_is_a_table_or_the_output_of_before(tmp_path: Path) -> None:
    placed = {"e1": ("a", "b"), "e2": ("c",)}
    table = "engine,adapter\ne1,a\ne1,b\ne2,c\n"
    assert read_present(written(tmp_path, "p.csv", table)) == placed
    document = {"engines": [{"engine": name, "adapters": names} for name, names in placed.items()]}
    assert read_present(written(tmp_path, "p.json", json.dumps(document))) == placed


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.csv", "engine,adapter\ne1,a\ne2,a\n", "row 3, adapter: a; one engine per adapter"),
        ("p.json", "[]", "no list `engines`"),
        ("p.json", '{"engines": [{"engine": "e"}]}', "row 1, adapters: a list of names"),
        ("p.json", '{"engines": [{"adapters": ["a"]}]}', "row 1, engine: None; printable text"),
    ],
)
def test_errors_of_present_plans(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_present(written(tmp_path, name, text))
    assert message in str(caught.value)


def test_the_ranks_are_those_of_the_engines() -> None:
    assert RANKS == engines.RANKS
