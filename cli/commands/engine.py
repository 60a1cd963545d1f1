"""`berth engine`: serve an emulated LLM engine with the OpenAI API."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import BadInput, CliError
from cli.input.arguments import AsJson
from cli.text.output import emit, report_line
from simulator.emulator.faults import EXPLAINED, FaultRates, InvalidFaults, parse_rates

if TYPE_CHECKING:
    from simulator.emulator.options import EmulatorOptions

FAULT_HELP = (
    "For tests of what stands before an engine: parts of the requests that fail, such as "
    "error=0.01,hang=0.001. "
    + "; ".join(f"{fault}: {effect}" for fault, effect in EXPLAINED.items())
    + "."
)


def engine(
    *,
    model: Annotated[
        list[str], typer.Option(help="Name of a model; each has a batch of its own. Repeatable.")
    ],
    adapter: Annotated[
        list[str] | None,
        typer.Option(help="Name of a LoRA adapter, served by the first model. Repeatable."),
    ] = None,
    retrain: Annotated[
        list[str] | None,
        typer.Option(
            help="One of the adapters, retrained beside serving once an endpoint says how much."
            " Repeatable."
        ),
    ] = None,
    listen: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 selects a free one.")] = 8000,
    speed: Annotated[
        float, typer.Option(help="How many times faster than the calibrated model it runs.")
    ] = 1.0,
    kv_tokens: Annotated[
        int, typer.Option(min=2, help="Tokens that the KV cache of a model holds.")
    ] = 10_000,
    max_batch: Annotated[int, typer.Option(min=1, help="Requests of a batch at most.")] = 256,
    max_queue: Annotated[
        int, typer.Option(min=1, help="Requests that wait at most; others get 503.")
    ] = 10_000,
    prefix_cache: Annotated[
        bool, typer.Option(help="Whether the beginning of a prompt is read once only.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of the lengths of answers.")] = 0,
    api_key_file: Annotated[
        Path | None, typer.Option(help="File of accepted API keys, one a line; else none needed.")
    ] = None,
    failures: Annotated[str, typer.Option(help=FAULT_HELP)] = "",
    allow_faults: Annotated[
        bool, typer.Option("--allow-faults", help="Let the header x-berth-fault choose a fault.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Emulate an LLM engine: the OpenAI API with the timing of continuous batching, no model.

    Answers are filler and say so. An answer has max_tokens tokens with ignore_eos, else a length
    drawn from seed and prompt.
    """
    from simulator.emulator.options import EmulatorOptions
    from simulator.llm.batching import EngineLimits

    try:
        faults = FaultRates(parse_rates(failures), allow_faults)
    except InvalidFaults as error:
        raise BadInput(f"--failures: {error}") from None
    try:
        options = EmulatorOptions(
            models=tuple(model),
            adapters=tuple(adapter or ()),
            retrained=tuple(retrain or ()),
            limits=EngineLimits(kv_tokens, max_batch),
            speed=speed,
            queue_limit=max_queue,
            prefix_cache=prefix_cache,
            seed=seed,
            keys=_keys(api_key_file),
            faults=faults,
        )
    except ValueError as error:
        raise BadInput(str(error)) from None
    try:
        asyncio.run(_serve(options, listen, port, as_json))
    except OSError as error:
        raise CliError(f"cannot listen on {listen}:{port}: {error.strerror}") from None


def _keys(path: Path | None) -> tuple[str, ...]:
    """Return the keys of a file. Raises BadInput for one that cannot be read, or has none."""
    if path is None:
        return ()
    try:
        keys = tuple(path.read_text().split())
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--api-key-file: {path} cannot be read: {error}") from None
    if not keys:
        raise BadInput(f"--api-key-file: {path} has no key")
    return keys


async def _serve(options: EmulatorOptions, host: str, port: int, as_json: bool) -> None:
    """Serve until SIGINT or SIGTERM; the first line of output has the address."""
    from simulator.emulator.server import EngineEmulator

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with EngineEmulator(options).listening(host, port) as bound:
        url = f"http://{f'[{host}]' if ':' in host else host}:{bound}/v1"
        if as_json:
            emit({"url": url})
        else:
            report_line(f"emulated engine of {', '.join(options.models)}: {url}")
        await stop.wait()
