"""A small language model on a stream of text that knows its place.

boa submit examples/train_streaming.yaml
python examples/train_streaming.py --epochs 1    # works by itself, too; so does torchrun
"""

import argparse
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import IterableDataset

from boa.train.torch import Elastic

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

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.memory = nn.Embedding(WORDS, 32), nn.GRU(32, 64, batch_first=True)
        self.scores = nn.Linear(64, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.scores(self.memory(self.words(words))[0])
        return scores


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, help="else as many as the job's file says")
options = parser.parse_args()

run = Elastic(batch_size=64)
model = run.wrap(Model)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
batches = run.loader(Text())
run.resume(model, optimizer)

for epoch in run.epochs(options.epochs):
    for text in batches:
        loss = cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        run.step(loss)
    if run.ranks.rank == 0:
        print(f"epoch {epoch}: loss {loss.item():.4f}")
