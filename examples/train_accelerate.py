"""A small regression with Hugging Face Accelerate, elastic by the lines that mention `run`.

boa submit examples/train_accelerate.yaml
torchrun --nproc-per-node=2 examples/train_accelerate.py --epochs 2
"""

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import TensorDataset

from boa.train.torch.accelerate import ElasticRun

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, help="else as many as the job's file says")
options = parser.parse_args()

accelerator = Accelerator(cpu=not torch.cuda.is_available())  # else it takes CPUs for one process
run = ElasticRun(accelerator, batch_size=64)
torch.manual_seed(0)
inputs = torch.randn(4096, 16)
dataset = TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))
model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
batches = run.loader(dataset)
run.resume(model, optimizer, scheduler)

for epoch in run.epochs(options.epochs):
    for x, y in batches:
        with accelerator.accumulate(model):
            loss = mse_loss(model(x), y)
            accelerator.backward(run.weighted(loss))
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        run.step()
    accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
