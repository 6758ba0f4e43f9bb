"""GPU types that can be rented: nodes, list prices, and what the public files call them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boa.errors import InputError
from boa.formats import checks
from boa.model.workload import GpuType
from boa.units import GpuName, UsdPerHour

PRICE_SOURCE = "Azure on-demand list prices, eastus, May 2026 (the paper's appendix)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Facts of a GPU type that are known before anything is measured."""

    name: GpuName
    gpus_per_node: int
    price: UsdPerHour | None = None
    """USD per GPU and hour; None where no list price is known."""
    suffix: str | None = None
    """How the Sia artifact's files name it."""


OFFERS: Mapping[GpuName, Offer] = {
    offer.name: offer
    for offer in (
        Offer(name="T4", gpus_per_node=4, price=1.088, suffix="aws"),
        Offer(name="V100", gpus_per_node=8, price=2.754, suffix="azure"),
        Offer(name="A100", gpus_per_node=8, price=3.400, suffix="dgx-ext"),
        Offer(name="RTX2080Ti", gpus_per_node=8, suffix="rtx"),
        Offer(name="QuadroRTX6000", gpus_per_node=4, suffix="quad"),
        Offer(name="A800", gpus_per_node=8),
        Offer(name="H200", gpus_per_node=8),
    )
}


def gpu_types(
    gpus: Sequence[GpuName],
    prices: Mapping[GpuName, UsdPerHour] | None = None,
    gpus_per_node: Mapping[GpuName, int] | None = None,
) -> dict[GpuName, GpuType]:
    """GPU types by name, in this order, at the prices given or else at list price.

    One type alone costs 1 per GPU-hour unless a price is given: a budget then counts GPUs, as in
    the paper's homogeneous settings. A type without a list price costs 1 too.
    """
    given = prices or {}
    for name in given:
        if name not in gpus:
            raise InputError(f"prices.{name}", name, f"one of the GPU types: {', '.join(gpus)}")
        checks.number(given[name], f"prices.{name}", above=0)
    types: dict[GpuName, GpuType] = {}
    for name in gpus:
        offer = OFFERS.get(name)
        listed = offer.price if offer is not None and len(gpus) > 1 else None
        known_node = offer.gpus_per_node if offer is not None else 1
        types[name] = GpuType(
            name=name,
            price=given.get(name, listed or 1.0),
            gpus_per_node=(gpus_per_node or {}).get(name, known_node),
        )
    return types
