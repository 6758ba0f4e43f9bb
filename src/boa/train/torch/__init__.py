"""Training on any width: what a PyTorch script imports. Needs the extra boa-constrictor[torch].

    run = Elastic(batch_size=256)              # samples of a step, over all ranks
    model = run.wrap(ResNet)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = run.loader(dataset)
    run.resume(model, optimizer)
    for epoch in run.epochs():
        for images, labels in batches:
            run.step(cross_entropy(model(images), labels))

`docs/torch.md` explains every line. The parts can be used by themselves: `ElasticLoader` (every
sample once over any sequence of widths), `Checkpointer` (saved on k ranks, loaded on any number),
`NoiseMeter` (gradient noise under DDP), `Exchange` (what all ranks agree on).
"""

from boa.train.torch.checkpoint import Checkpointer, Loaded
from boa.train.torch.companion import Stopped
from boa.train.torch.data import Cell, ElasticLoader, Position
from boa.train.torch.elastic import Elastic
from boa.train.torch.exchange import Exchange
from boa.train.torch.noise import NoiseMeter, Statistics
from boa.train.torch.ranks import Ranks, join
from boa.train.torch.tuner import Tuner

__all__ = [
    "Cell",
    "Checkpointer",
    "Elastic",
    "ElasticLoader",
    "Exchange",
    "Loaded",
    "NoiseMeter",
    "Position",
    "Ranks",
    "Statistics",
    "Stopped",
    "Tuner",
    "join",
]
