"""A training in plain Python that may be stopped anywhere, and resumes from its own checkpoint.

    python3 checkpoints.py FOLDER --steps N

It notes each step in FOLDER/steps and ends with a number that depends on every step, so that a
step that was lost or done twice would show.
"""

import argparse
import json
import os
import signal
import time
from pathlib import Path

try:
    from berth_reporter import checkpoint
except ImportError:  # outside of Berth there is nothing to report to

    def checkpoint(step):
        pass


warned = False


def warn(*_):
    """Berth sends SIGUSR1 before the walltime: the loop saves after its step, and goes on."""
    global warned
    warned = True


def resume(path):
    """Return the last checkpoint, or the state before the first step."""
    return json.loads(path.read_text()) if path.exists() else {"step": 0, "weight": 1}


def save(path, state):
    """Publish by a rename, so that a stop leaves the old checkpoint or the new one; report it."""
    part = path.with_suffix(".part")
    with part.open("w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    checkpoint(state["step"])


def train(folder, steps, step_s, save_every):
    global warned
    state = resume(folder / "checkpoint.json")
    with (folder / "steps").open("a", buffering=1) as log:
        while state["step"] < steps:
            time.sleep(step_s)  # forward, backward, optimizer
            step = state["step"] + 1
            state = {"step": step, "weight": (state["weight"] * 31 + step) % (2**61 - 1)}
            log.write(f"{os.environ.get('BERTH_ATTEMPT', '1')} {step}\n")
            if warned or step % save_every == 0 or step == steps:
                warned = False
                save(folder / "checkpoint.json", state)
    print(f"step {state['step']}, weight {state['weight']}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--step-s", type=float, default=0.05)
    parser.add_argument("--save-every", type=int, default=100)
    arguments = parser.parse_args()
    signal.signal(signal.SIGUSR1, warn)
    train(arguments.folder, arguments.steps, arguments.step_s, arguments.save_every)
