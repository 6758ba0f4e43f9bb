"""A small residual network on images made up as they are needed, elastic by a few lines.

boa submit examples/train_cnn.yaml
python examples/train_cnn.py --epochs 2    # works by itself, too; so does torchrun
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from boa.train.torch import Elastic

CLASSES, SIZE = 10, 16


class Images(Dataset[tuple[torch.Tensor, int]]):
    # noisy pictures of ten patterns
    patterns = torch.randn(CLASSES, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        noise = torch.randn(3, SIZE, SIZE, generator=torch.Generator().manual_seed(index))
        return self.patterns[index % CLASSES] + 2 * noise, index % CLASSES


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.second(F.relu(self.first(x))))


def network() -> nn.Module:
    head = (nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(16 * 16, CLASSES))
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), Block(16), Block(16), *head)


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, help="else as many as the job's file says")

run = Elastic(batch_size=128)
model = run.wrap(network)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
batches = run.loader(Images())
run.resume(model, optimizer, scheduler)

for epoch in run.epochs(parser.parse_args().epochs):
    for images, labels in batches:
        loss = F.cross_entropy(model(images), labels)
        run.step(loss)
    scheduler.step()
    if run.ranks.rank == 0:
        print(f"epoch {epoch}: loss {loss.item():.4f}")
