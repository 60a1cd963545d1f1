"""`berth endpoints plan`: the fewest engines for a set of LoRA adapters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import BadInput
from cli.input.adapter_files import read_adapters, read_present
from cli.input.arguments import AsJson
from cli.input.choices import check_choice
from cli.text.output import emit, lines, table, working

if TYPE_CHECKING:
    from simulator.llm.adapters.placement import Placement, PlannedEngine, Planner

SHOWN_ADAPTERS = 6


def add_plan(group: typer.Typer) -> None:
    """Add `plan` to a group of commands."""
    group.command()(plan)


def plan(
    adapters: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="CSV or JSON: adapter, rank, rate_per_s, prompt_tokens, output_tokens and,"
            " if arrivals are no Poisson process, cv. Tokens are means.",
        ),
    ],
    engine: Annotated[
        str, typer.Option(help="Base model on one GPU: llama-3.1-8b or qwen2.5-7b.")
    ] = "llama-3.1-8b",
    headroom: Annotated[
        float, typer.Option(min=0.0, max=10.0, help="Part by which rates may grow.")
    ] = 0.2,
    present: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Present plan: CSV (engine, adapter), or the output of --json."
        ),
    ] = None,
    most_moves: Annotated[
        int,
        typer.Option(
            "--moves",
            min=0,
            help="Adapters that may change their engine to save one; those of an engine that"
            " cannot serve them do so in any case.",
        ),
    ] = 16,
    most_wait_s: Annotated[
        float, typer.Option("--max-wait-s", min=0.1, help="Longest wait of a request, s.")
    ] = 30.0,
    seed: Annotated[int, typer.Option(help="Seed of the requests that the twin serves.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Plan the fewest engines for LoRA adapters such that none of them starves.

    A plan comes from an estimate, and a digital twin of the engines serves it at the rates with
    headroom. Exit code 1 if the twin does not confirm an engine.
    """
    from simulator.llm.adapters.engines import ENGINES
    from simulator.llm.adapters.placement import Planner
    from simulator.llm.adapters.plan import NotServable

    check_choice("--engine", engine, ENGINES)
    loads = read_adapters(adapters)
    planner = Planner(
        ENGINES[engine],
        headroom,
        most_moves,
        seed,
        most_wait_s=most_wait_s,
        present=read_present(present) if present else {},
    )
    try:
        with working("planning", as_json):
            placement = planner.place(loads)
    except NotServable as error:
        raise BadInput(f"{adapters}: {error}") from None
    if as_json:
        emit(_document(planner, placement))
    else:
        _show(planner, placement)
    if not placement.confirmed:
        raise typer.Exit(1)


def _document(planner: Planner, placement: Placement) -> dict[str, Any]:
    from simulator.llm.adapters.engines import PROVENANCE
    from simulator.llm.adapters.throughput import ERROR_BOUNDS

    return {
        "model": planner.engine.name,
        "constants": PROVENANCE,
        "headroom": planner.headroom,
        "engines": [_row(engine) for engine in placement.engines],
        "lower_bound": placement.lower_bound,
        "error_bounds": ERROR_BOUNDS,
        "confirmed": placement.confirmed,
        "moves": [
            {"adapter": adapter, "from": before, "to": after}
            for adapter, before, after in placement.moves
        ],
    }


def _row(engine: PlannedEngine) -> dict[str, Any]:
    return {
        "engine": engine.name,
        "adapters": engine.adapters,
        "slots": engine.slots,
        "max_rank": engine.max_rank,
        "kv_tokens": engine.kv_tokens,
        "load": round(engine.load_ratio, 3),
        "margin": round(engine.margin, 3),
        "served": round(engine.served_ratio, 4),
        "oldest_wait_s": round(engine.oldest_wait_s, 2),
        "oldest_adapter": engine.oldest_adapter,
        "confirmed": engine.confirmed,
    }


def _show(planner: Planner, placement: Placement) -> None:
    from simulator.llm.adapters.engines import PROVENANCE
    from simulator.llm.adapters.throughput import ERROR_BOUNDS

    table(
        ("ENGINE", "ADAPTERS", "SLOTS", "RANK", "LOAD", "MARGIN", "SERVED", "WAIT S", "TWIN", ""),
        (
            (
                engine.name,
                len(engine.adapters),
                engine.slots,
                engine.max_rank,
                f"{engine.load_ratio:.0%}",
                f"{engine.margin:+.0%}",
                f"{engine.served_ratio:.1%}",
                f"{engine.oldest_wait_s:.1f}",
                "confirmed" if engine.confirmed else f"starves: {engine.oldest_adapter}",
                _names(engine.adapters),
            )
            for engine in placement.engines
        ),
    )
    low, high = ERROR_BOUNDS
    moves = [f"{adapter}: {before} -> {after}" for adapter, before, after in placement.moves]
    lines(
        [
            f"{len(placement.engines)} engines of {planner.engine.name};"
            f" no plan needs fewer than {placement.lower_bound}, by the estimate",
            f"The twin served {planner.span_s:.0f} s at {1 + planner.headroom:g} times the rates."
            f" What it can serve is {low:+.0%} to {high:+.0%} from the estimate.",
            f"Constants: {PROVENANCE}",
            *([f"{len(moves)} moves", *moves] if planner.present else []),
        ]
    )


def _names(adapters: tuple[str, ...]) -> str:
    more = len(adapters) - SHOWN_ADAPTERS
    shown = ", ".join(adapters[:SHOWN_ADAPTERS])
    return f"{shown} and {more} more" if more > 0 else shown
