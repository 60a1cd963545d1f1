"""Runs a launcher of several modules. Its text is the `-c` of a worker's Python.

    python3 -c TEXT NAME TEXT [NAME TEXT ...] -- ARGUMENTS

An argument has at most 8,192 characters, so that each module is one. It has the name by which the
next ones import it from this package, which workers need not have; `main` of the last one is run.
"""

import sys
from types import ModuleType


def main() -> None:
    words = iter(sys.argv[1:])
    while (name := next(words)) != "--":
        module = sys.modules[f"berth_client.{name}"] = ModuleType(name)
        exec(next(words), vars(module))
    sys.argv[1:] = words
    module.main()


if __name__ == "__main__":
    main()
