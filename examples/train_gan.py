"""A small GAN that learns a ring of points: two models, two optimisers, one loader.

boa submit examples/train_gan.yaml
python examples/train_gan.py --epochs 2    # works by itself, too; so does torchrun
"""

import argparse

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.utils.data import TensorDataset

from boa.train.torch import Elastic

NOISE = 8


def network(inputs: int, outputs: int) -> nn.Module:
    hidden = (nn.Linear(inputs, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2))
    return nn.Sequential(*hidden, nn.Linear(64, outputs))


def ring(count: int = 8192) -> torch.Tensor:
    random = torch.Generator().manual_seed(1)
    angle = 2 * torch.pi * torch.rand(count, generator=random)
    points = torch.stack([angle.cos(), angle.sin()], dim=1)
    return points + 0.05 * torch.randn(count, 2, generator=random)


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, help="else as many as the job's file says")
options = parser.parse_args()

run = Elastic(batch_size=128)
generator = run.wrap(lambda: network(NOISE, 2))
discriminator = run.wrap(lambda: network(2, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
batches = run.loader(TensorDataset(ring()))
run.resume(generator, discriminator, opt_g, opt_d)

for epoch in run.epochs(options.epochs):
    for (real,) in batches:
        fake = generator(torch.randn(len(real), NOISE, device=run.device))
        good, bad = discriminator(real), discriminator(fake.detach())
        loss_d = bce(good, torch.ones_like(good)) + bce(bad, torch.zeros_like(bad))
        run.step(loss_d, optimizer=opt_d)
        fooled = discriminator(fake)
        loss_g = bce(fooled, torch.ones_like(fooled))
        run.step(loss_g, optimizer=opt_g)
    if run.ranks.rank == 0:
        print(f"epoch {epoch}: loss_d {loss_d.item():.3f}, loss_g {loss_g.item():.3f}")
