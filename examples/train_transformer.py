"""A small language model whose batch size follows the width and the gradient's noise.

boa submit examples/train_transformer.yaml
python examples/train_transformer.py --epochs 1    # works by itself, too; so does torchrun
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

from boa.train.torch import Elastic

WORDS, LENGTH, WIDTH, LAYERS = 64, 32, 64, 2


def sentences(count: int = 2048) -> torch.Tensor:
    """Each word follows from the one before by a random table, most of the time."""
    random = torch.Generator().manual_seed(1)
    table = torch.randint(WORDS, (WORDS,), generator=random)
    text = torch.randint(WORDS, (count, LENGTH + 1), generator=random)
    for n in range(1, LENGTH + 1):
        follows = torch.rand(count, generator=random) < 0.8
        text[:, n] = torch.where(follows, table[text[:, n - 1]], text[:, n])
    return text


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.scores = nn.Linear(WIDTH, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, device=words.device)
        x = self.words(words) + self.places.weight
        return self.scores(self.layers(x, mask=mask, is_causal=True))


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, help="else as many as the job's file says")
options = parser.parse_args()

run = Elastic(batch_size=32, max_batch=512, local_batch=(8, 64), learning_rate="sqrt")
model = run.wrap(Model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batches = run.loader(TensorDataset(sentences()))
run.resume(model, optimizer)

for epoch in run.epochs(options.epochs):
    for (text,) in batches:
        scores = model(text[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
        run.step(loss)
    if run.ranks.rank == 0:
        print(f"epoch {epoch}: loss {loss.item():.4f}")
