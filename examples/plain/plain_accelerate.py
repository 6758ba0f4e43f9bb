"""`train_accelerate.py` before BOA, at whatever width `accelerate launch` gives it."""

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()

accelerator = Accelerator(cpu=not torch.cuda.is_available())  # else it takes CPUs for one process
torch.manual_seed(0)
inputs = torch.randn(4096, 16)
dataset = TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))
model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
batches = DataLoader(dataset, batch_size=64, shuffle=True)
model, optimizer, scheduler, batches = accelerator.prepare(model, optimizer, scheduler, batches)

for epoch in range(options.epochs):
    for x, y in batches:
        with accelerator.accumulate(model):
            loss = mse_loss(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
