"""`train_streaming.py` before BOA: for one GPU."""

import argparse
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset

WORDS, LENGTH, SENTENCES = 64, 16, 4096


class Text(IterableDataset[torch.Tensor]):
    # each sentence counts on from its first word, most of the time
    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> Iterator[torch.Tensor]:
        while self.at < SENTENCES:
            random = torch.Generator().manual_seed(self.at)
            self.at += 1
            words = torch.randint(WORDS, (1,), generator=random) + torch.arange(LENGTH + 1)
            wrong = torch.rand(LENGTH + 1, generator=random) < 0.1
            yield (words + wrong * 7) % WORDS
        self.at = 0


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.memory = nn.Embedding(WORDS, 32), nn.GRU(32, 64, batch_first=True)
        self.scores = nn.Linear(64, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.scores(self.memory(self.words(words))[0])
        return scores


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
model = Model().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
batches = DataLoader(Text(), batch_size=64)

for epoch in range(options.epochs):
    for text in batches:
        text = text.to(device)
        loss = cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
