"""`boa offers`: instances with GPUs, and what the clouds ask for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.amounts import dollars
from boa.cli import options, parsers, shell
from boa.cli.console import check_writable, console, emit_json, note, working, write_file
from boa.cli.options import Json
from boa.errors import BoaError, FileError, InputError

if TYPE_CHECKING:
    from boa.catalogue.cloud_offers import CloudOffer
    from boa.catalogue.refreshing import RefreshOutcome

CLOUDS = ("aws", "gcp", "azure", "lambda")
SORTS = ("price", "memory", "gpus", "cloud")
UNKNOWN = float("inf")
"""The sort key of an offer without a price: it comes last."""


class NothingRefreshed(BoaError):
    """Every cloud that was asked failed; why is on stderr already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Offers that are listed, and their order."""

    cloud: Annotated[
        Sequence[str] | None,
        shell.Option(
            "--cloud",
            metavar="CLOUD,...",
            parser=parsers.listed(
                "--cloud", parsers.one_of("--cloud", CLOUDS), "clouds, such as aws,lambda"
            ),
            help=f"Of {', '.join(CLOUDS)}; all.",
        ),
    ] = None
    gpu: Annotated[
        Sequence[str] | None,
        shell.Option(
            "--gpu",
            metavar="GPU,...",
            parser=parsers.listed("--gpu", str, "GPU types, such as A100,H100"),
            help="GPU types, such as A100,H100; all.",
        ),
    ] = None
    region: Annotated[
        str | None,
        shell.Option("--region", metavar="REGION", help="One region, such as us-east-1; all."),
    ] = None
    spot: Annotated[
        bool,
        shell.Option("--spot", help="Spot prices, and only what is known to have one."),
    ] = False
    sort: Annotated[
        str,
        options.choice(
            "--sort",
            SORTS,
            "By price per GPU, by memory of a GPU, by GPUs per node (largest first), or by "
            "cloud; then by price.",
        ),
    ] = "price"

    @property
    def clouds(self) -> Sequence[str]:
        return self.cloud or CLOUDS


def offers(
    wanted: Wanted,
    refresh: Annotated[
        bool,
        shell.Option(
            "--refresh",
            help="Ask the clouds first: AWS with your credentials, Azure, Lambda with "
            "$LAMBDA_API_KEY. With --region, that region of the one --cloud.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """List GPU instances that can be rented, with their prices. Rents nothing.

    Prices come from a table with the source and the date of every row. Those
    that --refresh fetched are kept in the data folder and win over it.

    [bold]Examples[/bold]
    [dim]$[/dim] boa offers --gpu A100
    [dim]$[/dim] boa offers --cloud aws,gcp --spot
    [dim]$[/dim] boa offers --refresh --cloud aws --region eu-west-1
    """
    from boa.catalogue.cloud_offers import offers as known

    outcome = _refresh(wanted.clouds, wanted.region) if refresh else None
    rows = _chosen(known(), wanted)
    rows.sort(key=_order(wanted.sort, wanted.spot))
    if json:
        emit_json(_document(rows, outcome))
    else:
        _show(rows, wanted.spot)
    if outcome is not None and outcome.failed and not outcome.fresh:
        raise NothingRefreshed("no cloud could be refreshed; what is listed is what was known")


def _refresh(clouds: Sequence[str], region: str | None) -> "RefreshOutcome":
    """Ask, keep what was said, and say what was not."""
    from datetime import UTC, datetime

    from boa.catalogue import cloud_offers, refreshing

    sources = refreshing.sources_for(clouds, region)
    path = cloud_offers.refreshed_file()
    _make_room(path)
    old = cloud_offers.load(path)
    with working("asking the clouds"):
        outcome = refreshing.refresh(sources, cloud_offers.offers(path), datetime.now(UTC))
    for name, why in outcome.skipped.items():
        note(f"{name}: not refreshed: {why}")
    for name, why in outcome.failed.items():
        note(f"{name}: failed, its old prices stay: {why}")
    if outcome.fresh:
        text = cloud_offers.text_of(refreshing.merged(old, outcome.fresh))
        write_file(path, text, "offers")
    return outcome


def _make_room(path: Path) -> None:
    """Before anybody is asked: a folder that nobody else may look into, as the service's own."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise FileError(str(path.parent), reason, "a folder; $BOA_HOME names another") from None
    check_writable(path, "offers")


def _chosen(rows: "Sequence[CloudOffer]", wanted: Wanted) -> "list[CloudOffer]":
    from boa.catalogue.cloud_offers import ANYWHERE

    gpus, region = {row.gpu.lower(): row.gpu for row in rows}, wanted.region
    named = [gpu.lower() for gpu in wanted.gpu or gpus]
    for gpu in wanted.gpu or ():
        if gpu.lower() not in gpus:
            raise InputError("--gpu", gpu, f"one of {', '.join(sorted(gpus.values()))}")
    regions = {row.region for row in rows if row.cloud in wanted.clouds} - {ANYWHERE}
    if region is not None and region not in regions:
        names = f"one of {', '.join(sorted(regions))}; --refresh fetches another"
        raise InputError("--region", region, names if regions else "none: all cost the same")
    return [
        row
        for row in rows
        if row.cloud in wanted.clouds
        and row.gpu.lower() in named
        and (region is None or row.region in (region, ANYWHERE))
        and (not wanted.spot or row.spot_price_per_hour is not None)
    ]


def _order(sort: str, spot: bool) -> "Callable[[CloudOffer], tuple[Any, ...]]":
    def key(row: "CloudOffer") -> tuple[Any, ...]:
        price = row.spot_price_per_gpu_hour if spot else row.price_per_gpu_hour
        first: Mapping[str, float] = {
            "price": 0,
            "memory": -row.gpu_memory_gb,
            "gpus": -row.gpus,
            "cloud": CLOUDS.index(row.cloud),
        }
        return (first[sort], UNKNOWN if price is None else round(price, 4), *row.key)

    return key


def _document(rows: "Sequence[CloudOffer]", outcome: "RefreshOutcome | None") -> dict[str, Any]:
    per_gpu = ("price_per_gpu_hour", "spot_price_per_gpu_hour")
    listed = [row.document() | {name: getattr(row, name) for name in per_gpu} for row in rows]
    if outcome is None:
        return {"offers": listed}
    refreshed: dict[str, Any] = {}
    for row in outcome.fresh:
        refreshed[row.cloud] = refreshed.get(row.cloud, 0) + 1
    how = {"offers": refreshed, "skipped": outcome.skipped, "failed": outcome.failed}
    return {"offers": listed, "refreshed": how}


def _show(rows: "Sequence[CloudOffer]", spot: bool) -> None:
    from boa.cli.markup import escape
    from boa.cli.tables import listing

    out = console()
    if not rows:
        out.print("no such offers")
        return
    kind = "spot " if spot else ""
    columns = ("cloud", "instance", "GPUs", "GB each", f"{kind}$/GPU-h", f"{kind}$/h", "region")
    cells = []
    for row in rows:
        gpu_hour = row.spot_price_per_gpu_hour if spot else row.price_per_gpu_hour
        hour = row.spot_price_per_hour if spot else row.price_per_hour
        shown = (row.cloud, row.instance_type, f"{row.gpus}×{row.gpu}", f"{row.gpu_memory_gb:g}")
        money = (_dollars(gpu_hour), _dollars(hour))
        cells.append(tuple(map(escape, (*shown, *money, row.region, row.date, row.source))))
    right = ("GB each", f"{kind}$/GPU-h", f"{kind}$/h")
    names = (*columns, "date", "source")
    drop = ("source", "date", "region")
    out.print(listing(names, cells, out.width, right=right, cut=("instance", "source"), drop=drop))
    dates = [row.date for row in rows if row.price_per_hour or row.spot_price_per_hour]
    when = f"prices of {' to '.join(sorted({min(dates), max(dates)}))}" if dates else "no prices"
    count = "1 offer" if len(rows) == 1 else f"{len(rows)} offers"
    out.print(f"\n{count}, {when}; --refresh asks for today's")


def _dollars(price: float | None) -> str:
    return "–" if price is None else dollars(price).replace("$", "")
