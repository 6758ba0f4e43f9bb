"""A compiled model whose gradients are clipped by hand.

boa submit examples/train_compile.yaml
python examples/train_compile.py --epochs 2 --backend eager    # works by itself; so does torchrun
"""

import argparse

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import TensorDataset

from boa.train.torch import Elastic

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, help="else as many as the job's file says")
parser.add_argument("--backend", default="inductor", help="of torch.compile")
options = parser.parse_args()

inputs = torch.randn(8192, 16, generator=torch.Generator().manual_seed(1))
data = TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))

run = Elastic(batch_size=128)
model = run.wrap(lambda: nn.Sequential(nn.Linear(16, 128), nn.GELU(), nn.Linear(128, 1)))
compiled = torch.compile(model, backend=options.backend)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batches = run.loader(data)
run.resume(model, optimizer)

for epoch in run.epochs(options.epochs):
    for x, y in batches:
        loss = mse_loss(compiled(x), y)
        if run.backward(loss):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        run.step()
    if run.ranks.rank == 0:
        print(f"epoch {epoch}: loss {loss.item():.4f}")
