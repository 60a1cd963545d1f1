"""The step takes the values of secrets into its memory, and removes their file."""

from __future__ import annotations

import os

from berth_agent.linux import files
from berth_agent.step.checks import StartRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from berth_agent.step.spec import Spec

REFERENCE = "secret://"


def take(spec: Spec) -> None:
    """Put the values in place of the names in the environment. Raises StartRefused.

    Variables that Berth sets itself have no name of a secret, and stay as they are.
    """
    if not spec.secrets:
        return
    try:
        values = files.read_json(spec.secrets)
        os.unlink(spec.secrets)
    except (OSError, ValueError):
        values = None
    if not isinstance(values, dict):
        detail = "the node does not have the values any more, as after a reboot"
        raise StartRefused("secret_lost", detail, False)
    variables = spec.variables if spec.image else spec.env
    for name, value in values.items():
        if variables.get(name, "").startswith(REFERENCE):
            if spec.image and ("\n" in value or "\r" in value):
                detail = f"{name}: its value has a line break; with an image none can be passed"
                raise StartRefused("secret_unusable", detail, True)
            variables[name] = value
