"""The agent in a container: it joins once, by the token that the first start leaves, then runs.

`python infra/image/node.py GATEWAY CA`; the settings are those of `infra/nodes/local.toml`.
"""

import sys
import time
from pathlib import Path

NODE = "local"
CONFIG = Path(__file__).parents[1] / "nodes" / "local.toml"
TOKEN = Path("/inside/join.token")
POLL_S = 0.5


def main(gateway: str, ca: str, config: Path = CONFIG, token: Path = TOKEN) -> int:
    """Join unless there is an identity, then become the agent; return its exit code."""
    from berth_agent import cli
    from berth_agent.node import config as settings

    head = ["--config", str(config)]
    if not Path(settings.load(config, {}).state, "identity.json").exists():
        while not token.exists():
            time.sleep(POLL_S)
        words = ["--node-id", NODE, "--ca", ca, "--token", token.read_text().strip()]
        if code := cli.main([*head, "join", gateway, *words]):
            return code
    return cli.main([*head, "run"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
