"""Readers of profile folders: Sia, Pollux, Rubick, and our own.

Sia and Pollux: one folder per application with `placements[-GPU].csv`, `scalability[-GPU].csv`
and `validation-B.csv`. Ours is the same with GPU types by their names (`placements-H100.csv`).
Rubick: `iteration_times/APPLICATION.csv`.
"""

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np

from boa.catalogue.figures import (
    DIGITS,
    AdaptiveFigures,
    Figures,
    PlanFigures,
    PlanTime,
    System,
    rounded_throughput,
)
from boa.catalogue.offers import OFFERS
from boa.catalogue.rounding import rounded, rounded_one
from boa.catalogue.tables import Row, read_csv
from boa.errors import FileError, InputError
from boa.goodput.efficiency import Convergence
from boa.goodput.fit import Measurements, fit_throughput
from boa.goodput.measured import MeasuredTimes, smallest_rotation
from boa.goodput.speedup import DeviceProfile
from boa.goodput.timing import Curve
from boa.model.cluster import Shape
from boa.units import GpuName, Seconds

SOURCES: dict[System, str] = {
    "sia": "Sia artifact (SOSP'23)",
    "pollux": "Pollux artifact (OSDI'21)",
    "rubick": "Rubick artifact (MLSys'25)",
}
UNSUFFIXED = "T4"
"""The GPU type of the Pollux artifact's files, which carry no suffix."""
RUBICK_GPU = "A800"
MAX_BATCH = 1_000_000
"""Every whole batch size is considered, so a slip in a file's name must not fill the memory."""

_BY_SUFFIX = {offer.suffix: offer.name for offer in OFFERS.values() if offer.suffix}
_Timed: TypeAlias = tuple[float, Seconds, Seconds]
"""(local batch, step time, accumulation time)."""
_STEP_COLUMNS = ("local_bsz", "step_time", "sync_time")
_EXPECTED = (
    "a folder of profiles: APPLICATION/placements[-GPU].csv with validation-B.csv (Sia, Pollux, "
    "ours), or iteration_times/APPLICATION.csv (Rubick)"
)


def read_profiles(
    folder: str | Path,
    *,
    applications: Collection[str] | None = None,
    gpus: Collection[GpuName] | None = None,
) -> Figures:
    """Learn the figures from a folder of profiles; only these applications and types if given."""
    found = find_profiles(folder)
    if isinstance(found, Path):
        return _read_rubick(found, applications, gpus)
    return _read_adaptive(found, applications, gpus)


def find_profiles(folder: str | Path) -> Path | list[Path]:
    """Rubick's folder of iteration times, or one folder per application (Sia, Pollux, ours)."""
    root = Path(folder)
    if not root.is_dir():
        raise FileError(str(root), "no such folder", _EXPECTED)
    for candidate in (root / "iteration_times", root):
        if candidate.is_dir() and candidate.name == "iteration_times":
            return candidate
    for candidate in (root, root / "traces"):
        folders = [p.parent for p in sorted(candidate.glob("*/placements*.csv"))]
        if folders:
            return list(dict.fromkeys(folders))
    raise FileError(str(root), "no profiles in it", _EXPECTED)


def system_of(folders: list[Path]) -> System:
    suffixes = {suffix for folder in folders for suffix in devices_in(folder).values()}
    return "sia" if suffixes & set(_BY_SUFFIX) else "pollux"


def _read_adaptive(
    folders: list[Path], applications: Collection[str] | None, gpus: Collection[GpuName] | None
) -> Figures:
    system = system_of(folders)
    learned: dict[str, AdaptiveFigures] = {}
    widest_node: dict[GpuName, int] = {}
    for folder in folders:
        if applications is not None and folder.name not in applications:
            continue
        devices: dict[GpuName, DeviceProfile] = {}
        for gpu, suffix in devices_in(folder).items():
            if gpus is None or gpu in gpus:
                measured = read_measurements(folder, suffix)
                devices[gpu] = learn_device(measured)
                on_one = measured.gpus[measured.nodes == 1]
                widest_node[gpu] = max(widest_node.get(gpu, 1), *on_one.astype(int), 1)
        learned[folder.name] = AdaptiveFigures(
            convergence=read_convergence(folder), devices=devices
        )
    return Figures(
        system=system,
        source=SOURCES[system],
        applications=learned,
        gpus_per_node={
            gpu: OFFERS[gpu].gpus_per_node if gpu in OFFERS else width
            for gpu, width in widest_node.items()
        },
        available=tuple(folder.name for folder in folders),
        gpu_names=tuple(dict.fromkeys(gpu for folder in folders for gpu in devices_in(folder))),
    )


def devices_in(folder: Path) -> dict[GpuName, str]:
    """GPU type -> the suffix of its files."""
    found: dict[GpuName, str] = {}
    for path in sorted(folder.glob("placements*.csv")):
        suffix = path.stem.removeprefix("placements").removeprefix("-")
        found[_BY_SUFFIX.get(suffix, suffix) or UNSUFFIXED] = suffix
    order = list(OFFERS)
    return dict(sorted(found.items(), key=lambda item: _position(order, item[0])))


def _position(order: list[str], name: str) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)


def read_measurements(folder: Path, suffix: str) -> Measurements:
    """Step times of one application on one GPU type, by placement and by GPU count."""
    rows = [(len(shape), sum(shape), *times) for shape, times in _by_placement(folder, suffix)]
    rows += [(*counts, *times) for counts, times in _by_count(folder, suffix)]
    return Measurements(*np.array(rows, dtype=float).T)


def read_step_times(folder: Path, suffix: str) -> MeasuredTimes:
    """The same for the simulator, which tells placements of as many GPUs apart."""
    placements: dict[Shape, list[_Timed]] = {}
    counts: dict[tuple[int, int], list[_Timed]] = {}
    for shape, times in _by_placement(folder, suffix):
        placements.setdefault(smallest_rotation(shape), []).append(times)
        counts.setdefault((len(shape), sum(shape)), []).append(times)
    for key, times in _by_count(folder, suffix):
        counts.setdefault(key, []).append(times)
    by_nodes: dict[int, dict[int, Curve]] = {}
    for (nodes, gpus), rows in counts.items():
        by_nodes.setdefault(nodes, {})[gpus] = Curve.of(rows)
    return MeasuredTimes({s: Curve.of(rows) for s, rows in placements.items()}, by_nodes)


def _by_placement(folder: Path, suffix: str) -> list[tuple[Shape, _Timed]]:
    path = folder / f"placements{_ending(suffix)}"
    table = read_csv(path, ("placement", *_STEP_COLUMNS))
    return [(_placement(row), _step(row)) for row in table.rows]


def _by_count(folder: Path, suffix: str) -> list[tuple[tuple[int, int], _Timed]]:
    path = folder / f"scalability{_ending(suffix)}"
    if not path.exists():
        return []
    table = read_csv(path, ("num_nodes", "num_replicas", *_STEP_COLUMNS))
    return [((r.whole("num_nodes"), r.whole("num_replicas")), _step(r)) for r in table.rows]


def _ending(suffix: str) -> str:
    return f"-{suffix}.csv" if suffix else ".csv"


def _step(row: Row) -> _Timed:
    step, sync = row.number("step_time", above=0), row.number("sync_time")
    if sync >= step:
        raise InputError(row.at("sync_time"), sync, f"less than the step time {step:g}")
    return float(row.whole("local_bsz")), step, step - sync


def _placement(row: Row) -> Shape:
    """GPUs on each node, one digit per node."""
    digits = row.text("placement")
    if not digits.isascii() or not digits.isdigit() or "0" in digits:
        expected = "one digit per node, its GPUs: 44 for two nodes of 4"
        raise InputError(row.at("placement"), digits, expected)
    return tuple(map(int, digits))


def learn_device(measured: Measurements) -> DeviceProfile:
    return DeviceProfile(
        throughput=rounded_throughput(fit_throughput(measured)),
        min_local_batch=int(measured.local_batch.min()),
        max_local_batch=int(measured.local_batch.max()),
        max_gpus=int(measured.gpus.max()),
    )


def read_convergence(folder: Path) -> Convergence:
    """The validation runs of one application, one file per total batch size."""
    files: dict[int, Path] = {}
    for path in folder.glob("validation-*.csv"):
        digits = path.stem.removeprefix("validation-")
        size = int(digits) if re.fullmatch("[0-9]{1,7}", digits) else 0
        if not 1 <= size <= MAX_BATCH:
            expected = f"validation-B.csv, B a whole number from 1 to {MAX_BATCH:,}"
            raise FileError(str(path), f"batch size '{digits[:20]}'", expected)
        files[size] = path
    if not files:
        raise FileError(str(folder), "no validation-B.csv in it", "one for every batch size")
    sizes = sorted(files)
    runs = [_validation(files[size]) for size in sizes]
    for size, run in zip(sizes, runs, strict=True):
        if len(run) != len(runs[0]):
            problem = f"{len(run)} epochs, {files[sizes[0]].name} has {len(runs[0])}"
            raise FileError(str(files[size]), problem, "as many epochs for every batch size")
    stacked = np.stack(runs, axis=-1)
    return Convergence(
        tuple(sizes),
        rounded(stacked[:, 0].min(axis=-1), DIGITS + 3),
        rounded(stacked[:, 1], DIGITS),
        rounded(stacked[:, 2], DIGITS),
        stacked[:, 3] if stacked[:, 3].all() else None,
    )


def _validation(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Epochs × (progress, grad_sqr, grad_var, iteration or 0 where it does not say)."""
    reached, epochs = 0.0, []
    table = read_csv(path, ("progress", "grad_sqr", "grad_var"))
    counted = "iteration" in table.columns
    for row in table.rows:
        progress = row.number("progress", above=0)
        if progress <= reached:
            raise InputError(row.at("progress"), progress, f"more than the epoch before: {reached}")
        reached = progress
        iteration = row.number("iteration", above=0) if counted else 0.0
        epochs.append((progress, row.number("grad_sqr"), row.number("grad_var"), iteration))
    return np.array(epochs)


def _read_rubick(
    folder: Path, applications: Collection[str] | None, gpus: Collection[GpuName] | None
) -> Figures:
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise FileError(str(folder), "no profiles in it", _EXPECTED)
    wanted = [p for p in files if applications is None or p.stem in applications]
    measured = gpus is None or RUBICK_GPU in gpus
    return Figures(
        system="rubick",
        source=SOURCES["rubick"],
        applications={
            path.stem: PlanFigures(devices={RUBICK_GPU: read_best_plans(path)} if measured else {})
            for path in wanted
        },
        gpus_per_node={RUBICK_GPU: OFFERS[RUBICK_GPU].gpus_per_node},
        available=tuple(path.stem for path in files),
        gpu_names=(RUBICK_GPU,),
    )


def read_best_plans(path: Path) -> tuple[PlanTime, ...]:
    """For every GPU count, the fastest plan among the measured placements on the fewest nodes."""
    best: dict[int, PlanTime] = {}
    for time in _plan_times(read_csv(path, ("exec_plan", "placement", "iter_time")).rows):
        rival = best.get(time.gpus)
        if rival is None or (time.nodes, time.iteration_s) < (rival.nodes, rival.iteration_s):
            best[time.gpus] = time
    return tuple(best[gpus] for gpus in sorted(best))


def _plan_times(rows: Iterable[Row]) -> Iterable[PlanTime]:
    for row in rows:
        _placement(row)
        seconds = row.number("iter_time")
        if seconds > 0:  # 0: it was tried and cannot run
            yield PlanTime(
                row.text("exec_plan"), row.text("placement"), rounded_one(seconds, DIGITS)
            )
