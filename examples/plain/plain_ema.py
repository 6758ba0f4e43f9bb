"""`train_ema.py` before BOA: for one GPU."""

import argparse

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset, random_split

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()

source = torch.Generator().manual_seed(1)
inputs = torch.randn(9192, 16, generator=source)
data = TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))
train, valid = random_split(data, [8192, 1000], source)

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 1)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
batches = DataLoader(train, batch_size=128, shuffle=True)
best = float("inf")

for epoch in range(options.epochs):
    for x, y in batches:
        loss = mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update_parameters(model)
    error = 0.0
    with torch.no_grad():
        for x, y in DataLoader(valid, batch_size=250):
            error += mse_loss(ema(x.to(device)), y.to(device), reduction="sum").item()
    error = error / len(valid)
    best = min(best, error)
    print(f"epoch {epoch}: error {error:.4f}, best {best:.4f}")
