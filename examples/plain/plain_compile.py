"""`train_compile.py` before BOA: for one GPU."""

import argparse

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--backend", default="inductor", help="of torch.compile")
options = parser.parse_args()

inputs = torch.randn(8192, 16, generator=torch.Generator().manual_seed(1))
data = TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(16, 128), nn.GELU(), nn.Linear(128, 1)).to(device)
compiled = torch.compile(model, backend=options.backend)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batches = DataLoader(data, batch_size=128, shuffle=True)

for epoch in range(options.epochs):
    for x, y in batches:
        loss = mse_loss(compiled(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
