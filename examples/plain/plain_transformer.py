"""`train_transformer.py` before BOA: for one GPU."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

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
parser.add_argument("--epochs", type=int, default=10)
options = parser.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
model = Model().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batches = DataLoader(TensorDataset(sentences()), batch_size=32, shuffle=True)

for epoch in range(options.epochs):
    for (text,) in batches:
        text = text.to(device)
        scores = model(text[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
