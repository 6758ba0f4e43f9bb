"""A small regression with Lightning, elastic by the lines that mention `elastic`.

boa submit examples/train_lightning.yaml
torchrun --nproc-per-node=2 examples/train_lightning.py --epochs 2
"""

import argparse

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import TensorDataset

from boa import train
from boa.train.torch.lightning import ElasticCallback


class Regression(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 1))

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = batch
        return mse_loss(self.net(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, help="else as many as the job's file says")
options = parser.parse_args()

elastic = ElasticCallback(batch_size=64)
torch.manual_seed(0)
inputs = torch.randn(4096, 16)
dataset = TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))
trainer = Trainer(
    max_epochs=options.epochs or train.context().epochs,
    callbacks=[elastic],
    logger=False,
    enable_checkpointing=False,  # BOA's checkpoints are what a restart goes on from
    **elastic.placement,
)
trainer.fit(Regression(), elastic.loader(dataset))
