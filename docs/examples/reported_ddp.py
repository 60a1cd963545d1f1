"""A DDP training that reports the own work of each rank, so that a slow one is found.

    python reported_ddp.py SECONDS [BATCH]

Each worker of the job runs it; without GPUs the ranks reduce by gloo. It ends after so long, or
when its directory has a file `finish`.
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


def train(seconds, batch):
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    has_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if has_gpu else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_gpu else torch.device("cpu")
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
    model = DistributedDataParallel(layers.to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    features = torch.randn(batch, WIDTH, device=device)
    times, begin_s, step = DdpTimes(model), time.monotonic(), 0
    stopping = torch.zeros(1, device=device)
    while not stopping.item():
        step += 1
        with times.iteration(step, samples=batch):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(features), features).backward()
            optimizer.step()
        # All ranks end after the same step.
        stopping.fill_(time.monotonic() - begin_s > seconds or os.path.exists("finish"))
        dist.all_reduce(stopping, op=dist.ReduceOp.MAX)
    print(f"rank {dist.get_rank()} ends at step {step}", flush=True)


if __name__ == "__main__":
    train(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 64)
    # No rank waits for another any more. Some versions of PyTorch may hang while they take the
    # process group down, so that the process ends without it.
    os._exit(0)
