"""A plain torchrun script that knows nothing of BOA: DDP, a checkpoint now and then, a log.

boa submit examples/train_untouched.yaml       # elastic all the same: boa wrap
torchrun --nproc-per-node=2 examples/train_untouched.py --epochs 2
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--out", type=Path, default=Path("untouched"))
options = parser.parse_args()

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")
torch.manual_seed(0)
inputs = torch.randn(4096, 16)
dataset = TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))
sampler: DistributedSampler[object] = DistributedSampler(dataset)
batches = DataLoader(dataset, batch_size=64 // world, sampler=sampler)
plain = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 1)).to(device)
model = DistributedDataParallel(plain)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

epoch, saved = 0, options.out / "last.pt"
if saved.exists():
    state = torch.load(saved, map_location=device)
    plain.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    epoch = state["epoch"]

while epoch < options.epochs:
    sampler.set_epoch(epoch)
    for step, (x, y) in enumerate(batches, 1):
        loss = mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 8 == 0:
            print(f"epoch {epoch} step {step}/{len(batches)} loss {loss.item():.4f}", flush=True)
    epoch += 1
    if rank == 0:
        options.out.mkdir(parents=True, exist_ok=True)
        now = {"model": plain.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(now, saved.with_suffix(".part"))
        os.replace(saved.with_suffix(".part"), saved)
dist.destroy_process_group()
