"""A training whose model can be laid out in every way, for tests on CPU ranks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

from boa.model.layouts import Trial

WIDE = 16


class Block(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDE)
        self.up, self.down = nn.Linear(WIDE, 4 * WIDE), nn.Linear(4 * WIDE, WIDE)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.down(torch.relu(self.up(self.norm(x)))))  # type: ignore[no-any-return]


class Net(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(6, WIDE)
        self.layers = nn.ModuleList(Block(dropout) for _ in range(3))
        self.head = nn.Linear(WIDE, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)  # type: ignore[no-any-return]


def tried(layout: str, **more: object) -> Trial:
    """On four A100s, unless it is said otherwise."""
    usual: dict[str, object] = {
        "gpu": "A100",
        "width": 4,
        "nodes": 1,
        "local_batch": 8,
        "batch": 32,
    }
    return Trial(layout=layout, **{**usual, **more})  # type: ignore[arg-type]


def split_plan() -> dict[str, Any]:
    return {"layers.*.up": ColwiseParallel(), "layers.*.down": RowwiseParallel()}


def train(
    interrupt: Callable[[int], None],
    layouts: dict[int, str],
    epochs: int = 3,
    clip: float | None = None,
    dropout: float = 0.0,
    room: int | None = None,
    compiled: bool = False,
) -> dict[str, Any]:
    """`layouts`: by attempt. `room`: samples at a time, more of which are out of memory."""
    from boa.train import context
    from boa.train.torch import Elastic
    from elastic_scripts import data

    run = Elastic(batch_size=8, seed=3, clip_norm=clip)
    name = layouts[context().attempt]

    def built() -> nn.Module:
        net = Net(dropout)
        return torch.compile(net, backend="eager") if compiled else net  # type: ignore[return-value]

    model = run.wrap(built, parallel=name, tensor_plan=split_plan())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    x, y = data()
    loader = run.loader(torch.utils.data.TensorDataset(x, y))
    run.resume(model, optimizer)
    losses = []
    for _ in run.epochs(epochs):
        for inputs, wanted in loader:
            if room is not None and len(inputs) > room:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            loss = (model(inputs) - wanted).square().mean()
            run.step(loss)
            interrupt(run.steps)
        right = torch.zeros(())
        with torch.no_grad():
            for inputs, wanted in run.evaluation(torch.utils.data.TensorDataset(x[:55], y[:55])):
                right += (model(inputs) - wanted).square().sum()
        losses.append(float(run.total(right)))
    return {"weights": _whole(model), "losses": losses}


def train_llama(interrupt: Callable[[int], None], parallel: str) -> dict[str, Any]:
    from transformers import LlamaConfig, LlamaForCausalLM

    from boa.train.torch import Elastic

    config = LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        vocab_size=64,
    )
    run = Elastic(batch_size=4, seed=3)
    model = run.wrap(lambda: LlamaForCausalLM(config), parallel=parallel)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    words = torch.randint(0, 64, (16, 8), generator=torch.Generator().manual_seed(1))
    loader = run.loader(words)
    run.resume(model, optimizer)
    losses = []
    for _ in run.epochs(2):
        for tokens in loader:
            loss = model(input_ids=tokens, labels=tokens).loss
            run.step(loss)
        losses.append(loss.item())
    return {"weights": _whole(model), "losses": losses}


def by_hand(interrupt: Callable[[int], None]) -> dict[str, Any]:
    from boa.train.torch import Elastic
    from elastic_scripts import data

    run = Elastic(batch_size=8)
    model = run.wrap(Net, parallel="auto")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = run.loader(torch.utils.data.TensorDataset(*data()))
    run.resume(model, optimizer)
    try:
        for _ in run.epochs(1):
            for inputs, wanted in loader:
                run.backward((model(inputs) - wanted).square().mean())
    except RuntimeError as refused:
        return {"refused": str(refused)}
    return {"refused": ""}


def copied_first(interrupt: Callable[[int], None]) -> dict[str, Any]:
    """A copy of the model is made before the first step, which shards do not allow."""
    import copy

    from boa.train.torch import Elastic

    run = Elastic(batch_size=8)
    model = run.wrap(Net, parallel="auto")
    copy.deepcopy(model)
    return {}


def batch_norm(interrupt: Callable[[int], None], parallel: str) -> dict[str, Any]:
    from boa.train.torch import Elastic
    from elastic_scripts import data

    run = Elastic(batch_size=8, seed=3)
    net = lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))  # noqa: E731
    model = run.wrap(net, parallel=parallel)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = data()
    loader = run.loader(torch.utils.data.TensorDataset(x, y))
    run.resume(model, optimizer)
    for _ in run.epochs(1):
        for inputs, wanted in loader:
            run.step((model(inputs) - wanted).square().mean())
    model.eval()
    value = torch.zeros(())
    with torch.no_grad():
        for inputs, wanted in run.evaluation(torch.utils.data.TensorDataset(x, y)):
            value += (model(inputs) - wanted).square().sum()
    return {"value": float(run.total(value))}


def _whole(model: nn.Module) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix("_orig_mod."): (
            value.full_tensor() if isinstance(value, DTensor) else value
        )
        .detach()
        .clone()
        for name, value in model.state_dict().items()
    }
