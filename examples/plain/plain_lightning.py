"""`train_lightning.py` before BOA."""

import argparse

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset


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
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()

torch.manual_seed(0)
inputs = torch.randn(4096, 16)
dataset = TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))
trainer = Trainer(
    max_epochs=options.epochs,
    logger=False,
    enable_checkpointing=False,
)
trainer.fit(Regression(), DataLoader(dataset, batch_size=64, shuffle=True))
