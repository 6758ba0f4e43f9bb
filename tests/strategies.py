"""Random workloads, small enough for brute force, with every feature the solver has to handle.

    from strategies import workloads

    @given(workload=workloads(max_types=1, concave=True))
    def test_...

`None` for a feature means: sometimes.
"""

from hypothesis import strategies as st

from boa.model.speedup import Amdahl, Power, Speedup, Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.units import GpuName

GPU_NAMES = ("T4", "V100", "A100")


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    """Floats on a grid of 1000 steps: varied, but shrinking to figures that a person can read."""
    return st.integers(0, 1000).map(lambda n: low + (high - low) * n / 1000)


@st.composite
def amdahl_curves(draw: st.DrawFn) -> Amdahl:
    return Amdahl(draw(numbers(0.0, 1.0)), draw(numbers(0.5, 4.0)))


@st.composite
def power_curves(draw: st.DrawFn) -> Power:
    return Power(draw(numbers(0.0, 1.0)), draw(numbers(0.5, 4.0)))


@st.composite
def concave_tables(draw: st.DrawFn, base: int, max_width: int) -> Table:
    """Non-decreasing and concave on [base, max_width], and s(k)/k non-increasing too."""
    step = draw(numbers(0.05, 2.0))
    rate = base * step * draw(numbers(1.0, 2.0))
    points = {base: rate}
    for k in range(base + 1, max_width + 1):
        step *= draw(numbers(0.0, 1.0))
        rate += step
        points[k] = rate
    return Table.of(points, draw(numbers(0.5, 2.0)))


@st.composite
def measured_tables(draw: st.DrawFn, base: int, max_width: int) -> Table:
    """What a profiler may return: gaps between the points, neither monotone nor concave."""
    more = draw(st.sets(st.integers(base, max_width), max_size=4))
    return Table.of({k: draw(numbers(0.2, 6.0)) for k in sorted({base, *more})})


def speedups(base: int, max_width: int, concave: bool | None = None) -> st.SearchStrategy[Speedup]:
    """Curves that run on `base` to `max_width` GPUs (Amdahl and Power also on fewer)."""
    smooth = st.one_of(amdahl_curves(), power_curves(), concave_tables(base, max_width))
    rough = measured_tables(base, max_width)
    if concave is None:
        return st.one_of(smooth, rough)
    return smooth if concave else rough


@st.composite
def gpu_types(draw: st.DrawFn, max_types: int = 3) -> dict[GpuName, GpuType]:
    names = GPU_NAMES[: draw(st.integers(1, max_types))]
    return {
        name: GpuType(
            name=name,
            price=draw(numbers(0.5, 4.0)),
            gpus_per_node=draw(st.sampled_from([1, 2, 4])),
        )
        for name in names
    }


@st.composite
def job_classes(
    draw: st.DrawFn,
    name: str,
    types: tuple[GpuName, ...],
    *,
    max_epochs: int = 4,
    max_width: int = 6,
    concave: bool | None = None,
    rescaling: bool | None = None,
    wide_base: bool | None = None,
    gaps: bool = True,
) -> JobClass:
    """One class; its home type runs every epoch, another type perhaps not (`gaps`)."""
    home = draw(st.sampled_from(types))
    may_be_wide = wide_base if wide_base is not None else draw(st.booleans())
    base = draw(st.integers(1, min(3, max_width))) if may_be_wide else 1
    epochs = []
    for _ in range(draw(st.integers(1, max_epochs))):
        running = [gpu for gpu in types if gpu == home or not gaps or draw(st.integers(0, 3))]
        speedup = {gpu: draw(speedups(base, max_width, concave)) for gpu in running}
        epochs.append(Epoch(work=draw(numbers(10.0, 2000.0)), speedups=speedup))
    has_rescaling = rescaling if rescaling is not None else draw(st.booleans())
    return JobClass(
        name=name,
        arrivals_per_hour=draw(numbers(0.5, 20.0)),
        epochs=tuple(epochs),
        weight=draw(st.sampled_from([1.0, 1.0, 0.3, 5.0])),
        rescale_s=draw(numbers(1.0, 300.0)) if has_rescaling else 0.0,
        min_gpus=base,
        max_gpus=draw(st.integers(base, max_width)),
    )


@st.composite
def workloads(
    draw: st.DrawFn,
    *,
    max_classes: int = 3,
    max_epochs: int = 4,
    max_types: int = 3,
    max_width: int = 6,
    concave: bool | None = None,
    rescaling: bool | None = None,
    wide_base: bool | None = None,
    gaps: bool = True,
) -> Workload:
    """1 to 3 classes of 1 to 4 epochs on 1 to 3 GPU types, curves and limits of every kind."""
    types = draw(gpu_types(max_types))
    classes = tuple(
        draw(
            job_classes(
                f"class{i}",
                tuple(types),
                max_epochs=max_epochs,
                max_width=max_width,
                concave=concave,
                rescaling=rescaling,
                wide_base=wide_base,
                gaps=gaps,
            )
        )
        for i in range(draw(st.integers(1, max_classes)))
    )
    return Workload(gpu_types=types, classes=classes)
