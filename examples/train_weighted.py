"""A classifier of a rare class, which a weighted sampler shows as often as the other.

boa submit examples/train_weighted.yaml
python examples/train_weighted.py --epochs 2    # works by itself, too; so does torchrun
"""

import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset, WeightedRandomSampler

from boa.train.torch import Elastic

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, help="else as many as the job's file says")
options = parser.parse_args()

source = torch.Generator().manual_seed(1)
labels = (torch.rand(8192, generator=source) < 0.05).long()
inputs = torch.randn(8192, 16, generator=source) + 0.5 * labels[:, None]
weights = (1.0 / torch.bincount(labels))[labels]

run = Elastic(batch_size=128)
model = run.wrap(lambda: nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
sampler = WeightedRandomSampler(weights.tolist(), num_samples=8192)
batches = run.loader(TensorDataset(inputs, labels), sampler=sampler, drop_last=True)
run.resume(model, optimizer)

for epoch in run.epochs(options.epochs):
    for x, y in batches:
        loss = cross_entropy(model(x), y)
        run.step(loss)
    if run.ranks.rank == 0:
        print(f"epoch {epoch}: loss {loss.item():.4f}")
