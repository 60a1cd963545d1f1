"""The `berth` command: its subcommands, which import their dependencies when run."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from cli.app import BerthApp
from cli.audit_command import audit
from cli.backup_commands import backup, restore
from cli.check_commands import bench, projections, verify
from cli.dead_commands import dead
from cli.demo_command import demo
from cli.fault_commands import faults
from cli.job_commands import cancel, jobs, logs, show
from cli.node_commands import cordon, drain, nodes, queue, uncordon
from cli.open_command import open_
from cli.pool_commands import pools
from cli.replay_command import replay
from cli.simulate_commands import simulate
from cli.stack_commands import access, down, restart, status, up
from cli.story_commands import events, trace, why
from cli.submit_command import submit
from cli.target import CA
from cli.tenant_commands import keys, tenants
from cli.validate_command import validate

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
    trace,
    logs,
    cancel,
    queue,
    cordon,
    uncordon,
    drain,
    events,
    replay,
    simulate,
    validate,
    verify,
    audit,
    backup,
    restore,
)
PASSING = {"allow_extra_args": True, "allow_interspersed_args": False}
"""Words behind the name of a benchmark, `--help` too, are arguments of the benchmark."""

app = BerthApp(
    name="berth",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="The control plane of a shared GPU cluster.",
)
for _command in PLAIN:
    app.command()(_command)
app.command("open")(open_)
app.command(context_settings=PASSING)(bench)
for _name, _group in (
    ("tenants", tenants),
    ("keys", keys),
    ("nodes", nodes),
    ("pools", pools),
    ("access", access),
    ("dead", dead),
    ("faults", faults),
    ("projections", projections),
):
    app.add_typer(_group, name=_name)


@app.callback()
def berth(
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
