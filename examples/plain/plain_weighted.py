"""`train_weighted.py` before BOA: for one GPU."""

import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()

source = torch.Generator().manual_seed(1)
labels = (torch.rand(8192, generator=source) < 0.05).long()
inputs = torch.randn(8192, 16, generator=source) + 0.5 * labels[:, None]
weights = (1.0 / torch.bincount(labels))[labels]

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
sampler = WeightedRandomSampler(weights.tolist(), num_samples=8192)
dataset = TensorDataset(inputs, labels)
batches = DataLoader(dataset, batch_size=128, sampler=sampler, drop_last=True)

for epoch in range(options.epochs):
    for x, y in batches:
        loss = cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
