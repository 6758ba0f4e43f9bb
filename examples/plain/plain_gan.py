"""`train_gan.py` before BOA: for one GPU."""

import argparse

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.utils.data import DataLoader, TensorDataset

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
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
generator = network(NOISE, 2).to(device)
discriminator = network(2, 1).to(device)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
batches = DataLoader(TensorDataset(ring()), batch_size=128, shuffle=True)

for epoch in range(options.epochs):
    for (real,) in batches:
        fake = generator(torch.randn(len(real), NOISE, device=device))
        good, bad = discriminator(real.to(device)), discriminator(fake.detach())
        loss_d = bce(good, torch.ones_like(good)) + bce(bad, torch.zeros_like(bad))
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        fooled = discriminator(fake)
        loss_g = bce(fooled, torch.ones_like(fooled))
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
    print(f"epoch {epoch}: loss_d {loss_d.item():.3f}, loss_g {loss_g.item():.3f}")
