"""A training with PyTorch DDP that can be stopped anywhere, and goes on from its checkpoint.

    python ddp.py FOLDER --steps N

Each worker of the job runs it as it stands; `torchrun` runs it where a worker has several GPUs.
FOLDER is on a file system that all nodes share. A file `finish` in it ends the training early.
"""

import argparse
import os
import signal
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SAVE_EVERY = 50
BATCH, WIDTH = 64, 32

stop_requested = False


def request_stop(*_):
    """Berth sends SIGTERM and waits `grace_s`: the loop saves and ends after its iteration."""
    global stop_requested
    stop_requested = True


def connect():
    """Join the gang by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; return the device."""
    has_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if has_gpu else "gloo")
    if not has_gpu:
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device


def newest_checkpoint(folder):
    """Return the newest checkpoint of the newest attempt, as rank 0 sees it; None at the start."""
    found = sorted(folder.glob("attempt-*/step-*.pt")) if dist.get_rank() == 0 else []
    chosen = [found[-1] if found else None]
    dist.broadcast_object_list(chosen, src=0)
    return chosen[0]


def save(folder, step, model, optimizer):
    """Write into the attempt's own folder and publish by a rename: no reader sees a part of it."""
    own = folder / f"attempt-{int(os.environ.get('BERTH_ATTEMPT', '1')):06}"
    own.mkdir(parents=True, exist_ok=True)
    path = own / f"step-{step:09}.pt"
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    with path.with_suffix(".part").open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    path.with_suffix(".part").rename(path)


def batch_of(step, device):
    """Return this rank's part of a batch; a real training seeks its data set to `step`."""
    generator = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
    features = torch.randn(BATCH, WIDTH, generator=generator)
    return features.to(device), features.sin().sum(1, keepdim=True).to(device)


def any_rank(value, device):
    """Return whether it is true on any rank, so that all ranks stop at the same step."""
    flag = torch.tensor([float(value)], device=device)
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def train(folder, steps):
    device = connect()
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, 1)).to(device)
    model = DistributedDataParallel(layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, checkpoint = 0, newest_checkpoint(folder)
    if checkpoint is not None:
        state = torch.load(checkpoint, map_location=device)
        step = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    print(f"rank {rank} of {world} begins at step {step}", flush=True)
    stopping = False
    while step < steps and not stopping:
        features, target = batch_of(step, device)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(features), target)
        loss.backward()
        optimizer.step()
        step += 1
        stopping = any_rank(stop_requested or (folder / "finish").exists(), device)
        if rank == 0 and (stopping or step % SAVE_EVERY == 0 or step == steps):
            save(folder, step, model, optimizer)
    weights = sum(parameter.double().abs().sum().item() for parameter in model.parameters())
    print(f"rank {rank} ends at step {step}, weights {weights:.6f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, request_stop)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    train(arguments.folder, arguments.steps)
    # All is on disk and no rank waits for another. Some versions of PyTorch may hang while they
    # take the process group down, so that the process ends without it.
    os._exit(0)
