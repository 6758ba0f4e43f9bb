"""A small regression with an average of its weights, evaluated by all ranks together.

boa submit examples/train_ema.yaml
python examples/train_ema.py --epochs 2    # works by itself, too; so does torchrun
"""

import argparse

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import TensorDataset, random_split

from boa.train.torch import Elastic

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, help="else as many as the job's file says")
options = parser.parse_args()

source = torch.Generator().manual_seed(1)
inputs = torch.randn(9192, 16, generator=source)
data = TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))
train, valid = random_split(data, [8192, 1000], source)

run = Elastic(batch_size=128)
model = run.wrap(lambda: nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 1)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
batches = run.loader(train)
run.resume(model, optimizer, ema=ema, best=float("inf"))

for epoch in run.epochs(options.epochs):
    for x, y in batches:
        if run.step(mse_loss(model(x), y)):
            ema.update_parameters(model)
    error = 0.0
    with torch.no_grad():
        for x, y in run.evaluation(valid, batch_size=250):
            error += mse_loss(ema(x), y, reduction="sum").item()
    error = run.total(error) / len(valid)
    run.kept.best = min(run.kept.best, error)
    if run.ranks.rank == 0:
        print(f"epoch {epoch}: error {error:.4f}, best {run.kept.best:.4f}")
