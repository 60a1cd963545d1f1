"""A DDP training that reports the own work of each rank, so that a slow one is found.

    python reported_ddp.py SECONDS [BATCH [STEPS]]

Each worker of the job runs it; without GPUs the ranks reduce by gloo. It ends after so long, after
so many steps, or when its directory has a file `finish`. With STEPS it goes on from `checkpoint.pt`
in its directory, which all nodes share: a worker that is stopped loses at most `SAVE_EVERY` steps.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from berth_reporter.pytorch import DdpTimes

WIDTH = 256
SAVE_EVERY = 20
CHECKPOINT = "checkpoint.pt"


def resumed(model, steps):
    """Return the step of the checkpoint, once its weights are in the model; 0 without one."""
    if not steps or not os.path.exists(CHECKPOINT):
        return 0
    state = torch.load(CHECKPOINT, map_location="cpu")
    model.load_state_dict(state["model"])
    return state["step"]


def save(model, step):
    """Publish by a rename: no reader sees a part of it."""
    torch.save({"step": step, "model": model.state_dict()}, f"{CHECKPOINT}.part")
    os.rename(f"{CHECKPOINT}.part", CHECKPOINT)


def train(seconds, batch, steps=0):
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    has_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if has_gpu else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_gpu else torch.device("cpu")
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
    model = DistributedDataParallel(layers.to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    features = torch.randn(batch, WIDTH, device=device)
    step = resumed(model, steps)
    times, begin_s = DdpTimes(model), time.monotonic()
    stopping = torch.zeros(1, device=device)
    while not stopping.item():
        step += 1
        with times.iteration(step, samples=batch, steps_total=steps or None):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(features), features).backward()
            optimizer.step()
        if steps and dist.get_rank() == 0 and step % SAVE_EVERY == 0:
            save(model, step)
        # All ranks end after the same step.
        over = time.monotonic() - begin_s > seconds or os.path.exists("finish")
        stopping.fill_(over or step == steps)
        dist.all_reduce(stopping, op=dist.ReduceOp.MAX)
    print(f"rank {dist.get_rank()} ends at step {step}", flush=True)


if __name__ == "__main__":
    train(float(sys.argv[1]), *map(int, sys.argv[2:4] or ["64"]))
    # No rank waits for another any more. Some versions of PyTorch may hang while they take the
    # process group down, so that the process ends without it.
    os._exit(0)
