"""The `berth` command: every subcommand by name, none of their work imported before it is used."""

from __future__ import annotations

from services.cli.app import BerthApp
from services.cli.demo_command import demo

app = BerthApp(
    name="berth",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="The control plane of a shared GPU cluster.",
)
app.command()(demo)


@app.callback()
def berth() -> None:
    """The control plane of a shared GPU cluster."""


if __name__ == "__main__":
    app()
