"""The `berth` command: its subcommands, which import their dependencies when run."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from cli.api.target import CA
from cli.app import BerthApp
from cli.commands.apply import apply
from cli.commands.audit import audit
from cli.commands.backup import backup, restore
from cli.commands.bench import bench
from cli.commands.completion import NAME, completion, enable_completion
from cli.commands.dead import dead
from cli.commands.demo import demo
from cli.commands.endpoints import endpoints
from cli.commands.engine import engine
from cli.commands.faults import faults, why_slow
from cli.commands.history import events, trace, why
from cli.commands.inject import inject
from cli.commands.jobs import cancel, jobs, show
from cli.commands.keys import keys
from cli.commands.ledgers import ledgers
from cli.commands.llm import llm
from cli.commands.logs import logs
from cli.commands.nodes import cordon, drain, nodes, uncordon
from cli.commands.open import open_
from cli.commands.pipeline import pipeline
from cli.commands.policies import policies
from cli.commands.pools import pools
from cli.commands.projections import projections
from cli.commands.queue import queue
from cli.commands.replay import replay
from cli.commands.retry import retry
from cli.commands.secrets import secrets
from cli.commands.simulate import simulate
from cli.commands.simulate_llm import simulate_llm
from cli.commands.simulate_retraining import simulate_retraining
from cli.commands.stack import access, down, restart, status, up
from cli.commands.stragglers import stragglers
from cli.commands.submit import submit
from cli.commands.tenants import tenants
from cli.commands.terminals import exec_, shell
from cli.commands.upgrade import upgrade
from cli.commands.usage import usage
from cli.commands.users import users
from cli.commands.validate import validate
from cli.commands.verify import verify
from cli.commands.webhooks import webhooks
from cli.commands.what_if import what_if
from cli.commands.whoami import whoami
from cli.text.output import lines

PLAIN = (
    up,
    down,
    restart,
    status,
    demo,
    submit,
    jobs,
    show,
    why,
    why_slow,
    trace,
    logs,
    shell,
    cancel,
    retry,
    queue,
    cordon,
    uncordon,
    drain,
    events,
    replay,
    simulate,
    engine,
    simulate_llm,
    simulate_retraining,
    apply,
    policies,
    validate,
    what_if,
    verify,
    stragglers,
    usage,
    audit,
    backup,
    restore,
    whoami,
    completion,
)
PASSING = {"allow_extra_args": True, "allow_interspersed_args": False}
"""Words behind the name of a benchmark, `--help` too, are arguments of the benchmark."""

app = BerthApp(
    name=NAME,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="The control plane of a shared GPU cluster.",
)
for _command in PLAIN:
    app.command()(_command)
app.command("open")(open_)
app.command("exec")(exec_)
app.command(context_settings=PASSING)(bench)
for _name, _group in (
    ("tenants", tenants),
    ("users", users),
    ("keys", keys),
    ("secrets", secrets),
    ("webhooks", webhooks),
    ("nodes", nodes),
    ("pools", pools),
    ("endpoints", endpoints),
    ("llm", llm),
    ("access", access),
    ("dead", dead),
    ("ledgers", ledgers),
    ("faults", faults),
    ("inject", inject),
    ("pipeline", pipeline),
    ("projections", projections),
    ("upgrade", upgrade),
):
    app.add_typer(_group, name=_name)


enable_completion()


def _print_version(is_set: bool) -> None:
    if is_set:
        from importlib.metadata import version

        lines([f"{NAME} {version(NAME)}"])
        raise typer.Exit


@app.callback()
def berth(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
    ca: Annotated[
        str, typer.Option(envvar=CA, help="Additional certificate authorities to trust, PEM.")
    ] = "",
) -> None:
    """The control plane of a shared GPU cluster.

    Exit codes: 0 done, 1 failed, 2 bad input, 3 not reachable, 4 not found, 5 refused.
    """
    if ca:
        os.environ[CA] = ca


if __name__ == "__main__":
    app()
