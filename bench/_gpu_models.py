"""The two models that are measured on GPUs, and data for them made at run time on the device."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

BANK = 4096
"""Samples that there are; they stay on the device, and the loader only hands out their numbers."""


@dataclass(frozen=True)
class Model:
    name: str
    build: Callable[[], nn.Module]
    data: Callable[[torch.device], torch.Tensor]
    """The bank."""
    loss: Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]
    """Of (model, bank, numbers)."""
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]
    batches: tuple[int, ...]
    """Per GPU, to be measured."""
    batch: int
    """For all else."""


class Block(nn.Module):
    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.short: nn.Module = nn.Identity()
        if stride != 1 or before != channels:
            conv = nn.Conv2d(before, channels, 1, stride, bias=False)
            self.short = nn.Sequential(conv, nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.short(x))


class ResNet18(nn.Sequential):
    """For images of 32 × 32, as it is used on CIFAR-10: 11.2 M parameters."""

    def __init__(self, channels: int = 64) -> None:
        layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, 1, 1, bias=False)]
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
        before = channels
        for stage in range(4):
            for block in range(2):
                after = channels << stage
                layers.append(Block(before, after, 2 if stage and not block else 1))
                before = after
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))
        for part in self.parameters():
            if part.dim() == 4:
                part.data = part.data.contiguous(memory_format=torch.channels_last)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ins, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.ins(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out: torch.Tensor = self.out(y.transpose(1, 2).reshape(batch, length, width))
        return out


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        grown: torch.Tensor = x + self.mlp(self.norm2(x))
        return grown


class Transformer(nn.Module):
    """The shape of GPT-2 small: 124 M parameters, input and output words shared."""

    def __init__(
        self, layers: int = 12, width: int = 768, words: int = 50304, length: int = 512
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, width // 64) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.words.weight, std=0.02)
        nn.init.normal_(self.places.weight, std=0.02)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.words(text) + self.places.weight[: text.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.words.weight)


def numbers() -> TensorDataset:
    return TensorDataset(torch.arange(BANK))


def _images(device: torch.device) -> torch.Tensor:
    """Noisy pictures of ten patterns; number i shows pattern i % 10."""
    source = torch.Generator(device).manual_seed(1)
    patterns = torch.randn(10, 3, 32, 32, generator=source, device=device)
    bank = 3 * torch.randn(BANK, 3, 32, 32, generator=source, device=device)
    bank += patterns[torch.arange(BANK, device=device) % 10]
    return bank.to(memory_format=torch.channels_last)


def _image_loss(model: nn.Module, bank: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    with torch.autocast(bank.device.type, torch.bfloat16):
        return F.cross_entropy(model(bank[chosen]), chosen % 10)


def _text(words: int, length: int) -> Callable[[torch.device], torch.Tensor]:
    def make(device: torch.device) -> torch.Tensor:
        """Each word follows from the one before by a table, four times in five."""
        source = torch.Generator(device).manual_seed(1)
        table = torch.randint(words, (words,), generator=source, device=device)
        text = torch.randint(words, (BANK, length + 1), generator=source, device=device)
        follows = torch.rand(BANK, length + 1, generator=source, device=device) < 0.8
        for n in range(1, length + 1):
            text[:, n] = torch.where(follows[:, n], table[text[:, n - 1]], text[:, n])
        return text

    return make


def _text_loss(model: nn.Module, bank: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    text = bank[chosen]
    with torch.autocast(bank.device.type, torch.bfloat16):
        scores = model(text[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())


def _adamw(model: nn.Module) -> torch.optim.Optimizer:
    fused = next(model.parameters()).is_cuda
    return torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=fused)


def _amsgrad(model: nn.Module) -> torch.optim.Optimizer:
    fused = next(model.parameters()).is_cuda
    return torch.optim.AdamW(model.parameters(), lr=3e-4, amsgrad=True, fused=fused)


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)


def models(*, tiny: bool = False) -> dict[str, Model]:
    """`tiny`: to try the program on a CPU."""
    cnn = Model(
        name="resnet18-cifar",
        build=(lambda: ResNet18(4)) if tiny else ResNet18,
        data=_images,
        loss=_image_loss,
        optimizer=_sgd,
        batches=(4, 8, 16) if tiny else (32, 64, 128, 256, 512, 1024, 2048),
        batch=8 if tiny else 128,
    )
    words, length = (64, 16) if tiny else (50304, 512)
    transformer = Model(
        name="transformer-124m",
        build=(lambda: Transformer(2, 64, words, length)) if tiny else Transformer,
        data=_text(words, length),
        loss=_text_loss,
        optimizer=_adamw,
        batches=(2, 4, 8) if tiny else (1, 2, 4, 8, 16, 32, 64, 128),
        batch=4 if tiny else 32,
    )
    return {model.name: model for model in (cnn, transformer)}


LARGE = {"350m": (24, 1024), "1.3b": (24, 2048), "3b": (32, 2752)}
"""Layers and width."""


def large_models(*, tiny: bool = False) -> dict[str, Model]:
    """With AdamW and its largest variance so far (amsgrad): 16 bytes of state to a parameter."""
    words, length = (64, 16) if tiny else (50304, 512)
    shapes = {"124m": (12, 768), **LARGE}
    if tiny:
        shapes = {name: (2, 64 * (6 + n)) for n, name in enumerate(shapes)}

    def model(name: str, layers: int, width: int) -> Model:
        return Model(
            name=f"transformer-{name}",
            build=lambda: Transformer(layers, width, words, length),
            data=_text(words, length),
            loss=_text_loss,
            optimizer=_amsgrad,
            batches=(4,),
            batch=4,
        )

    found = [model(name, *shape) for name, shape in shapes.items()]
    return {each.name: each for each in found}
