"""The catalogue: offers, figures, profile folders, and workloads estimated from them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from boa.catalogue import (
    OFFERS,
    Figures,
    PlanFigures,
    gpu_types,
    known_figures,
    read_profiles,
    read_trace,
    workload_from_files,
    workload_from_trace,
)
from boa.catalogue.figures import AdaptiveFigures
from boa.errors import FileError, InputError
from boa.formats.workload import dump_workload, parse_workload
from boa.goodput import Throughput, accumulation_time, step_time
from boa.model import Table
from boa.model.trace import Trace, TraceJob

TRUTH = Throughput.of((0.02, 0.0007, 0.12, 0.003, 0.03, 0.006, 2.3))
VALIDATION = "progress,iteration,metric,grad_sqr,grad_var\n100,100,0.1,9,5\n250,250,0.2,1,5\n"


def jobs_of(*applications: str, steps: int | None = None) -> Trace:
    """One job an hour, the last after len(applications) hours."""
    return Trace(
        tuple(
            TraceJob(name=f"j{i}", arrival_s=3600.0 * (i + 1), application=app, steps=steps)
            for i, app in enumerate(applications)
        )
    )


def placements(scale: float = 1.0) -> str:
    """A profile of TRUTH on two nodes of 4, columns in an order of its own."""
    lines = ["local_bsz,step_time,sync_time,placement"]
    for placement in ("1", "2", "3", "4", "13", "22", "44"):
        nodes, gpus = np.array([len(placement)]), np.array([sum(map(int, placement))])
        for size in (16, 32, 64):
            compute = accumulation_time(TRUTH, np.array([size]))[0] * scale
            step = step_time(TRUTH, nodes, gpus, np.array([size]))[0] * scale
            lines.append(f"{size},{float(step)!r},{float(step - compute)!r},{placement}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    """Our own format: one application on a GPU type that no offer knows."""
    folder = tmp_path / "profiles" / "mymodel"
    folder.mkdir(parents=True)
    (folder / "placements-H100.csv").write_text(placements())
    (folder / "validation-32.csv").write_text(VALIDATION)
    (folder / "validation-128.csv").write_text(VALIDATION.replace("100,100", "99,60"))
    return tmp_path / "profiles"


def write_trace(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return path


def test_one_gpu_type_costs_one_and_several_cost_their_list_price() -> None:
    assert gpu_types(["T4"])["T4"].price == 1.0
    assert [g.price for g in gpu_types(["T4", "V100", "A100"]).values()] == [1.088, 2.754, 3.4]
    assert gpu_types(["T4"], prices={"T4": 0.5})["T4"].price == 0.5
    assert gpu_types(["T4", "A800"])["A800"].price == 1.0
    assert [OFFERS[g].gpus_per_node for g in ("T4", "V100", "A100")] == [4, 8, 8]


def test_a_price_for_a_gpu_type_that_is_not_used_is_an_error() -> None:
    with pytest.raises(InputError, match=r"prices\.V100"):
        gpu_types(["T4"], prices={"V100": 1.0})


def test_our_own_profiles_work_for_a_gpu_type_and_model_nobody_knows(profiles: Path) -> None:
    learned = read_profiles(profiles)
    assert (learned.system, learned.gpus_per_node) == ("pollux", {"H100": 4})
    model = learned.applications["mymodel"]
    assert isinstance(model, AdaptiveFigures)
    device = model.devices["H100"]
    assert (device.min_local_batch, device.max_local_batch, device.max_gpus) == (16, 64, 8)
    assert device.throughput.astuple() == pytest.approx(TRUTH.astuple(), rel=1e-3)
    np.testing.assert_array_equal(model.convergence.progress, [99, 250])


def test_speed_is_one_at_the_base_of_the_first_type_and_others_are_relative(
    profiles: Path,
) -> None:
    slower = profiles / "mymodel" / "placements-B200.csv"
    slower.write_text(placements(scale=0.5))
    learned = read_profiles(profiles)
    first = workload_from_trace(jobs_of("mymodel", "mymodel"), learned, ["H100", "B200"])
    [job_class] = first.classes
    for epoch in job_class.epochs:
        h100, b200 = epoch.speedups["H100"], epoch.speedups["B200"]
        assert h100(1) == 1.0
        assert b200(1) == pytest.approx(2.0, rel=1e-3)
        assert b200(8) == pytest.approx(2 * h100(8), rel=1e-3)
    assert job_class.arrivals_per_hour == 1.0
    assert (job_class.min_gpus, job_class.max_gpus) == (1, 8)


def test_every_estimated_number_has_five_digits_so_that_the_file_is_the_workload() -> None:
    workload = workload_from_trace(jobs_of("bert", "cifar10", "cifar10"), known_figures(), ["T4"])
    for job_class in workload.classes:
        for epoch in job_class.epochs:
            curve = epoch.speedups["T4"]
            assert isinstance(curve, Table)
            for number in (epoch.work, job_class.arrivals_per_hour, *curve.measured):
                assert float(f"{number:.4e}") == number
    assert parse_workload(yaml.safe_load(dump_workload(workload))) == workload


def test_a_slowdown_makes_the_work_longer_and_leaves_the_speedups_alone() -> None:
    plain = workload_from_trace(jobs_of("cifar10"), known_figures(), ["T4"], slowdown="none")
    sia = workload_from_trace(jobs_of("cifar10"), known_figures(), ["T4"])
    for slow, fast in zip(sia.classes[0].epochs, plain.classes[0].epochs, strict=True):
        assert slow.work == pytest.approx(1.8 * fast.work, rel=1e-4)
        assert slow.speedups == fast.speedups


def test_rescaling_times_follow_the_artifact_unless_given() -> None:
    trace = jobs_of("bert", "imagenet")
    times = [c.rescale_s for c in workload_from_trace(trace, known_figures(), ["T4"]).classes]
    assert times == [120, 250]
    pollux = workload_from_trace(trace, known_figures("pollux"), ["T4"])
    assert [c.rescale_s for c in pollux.classes] == [30, 30]
    given = workload_from_trace(trace, known_figures(), ["T4"], rescale=7)
    assert [c.rescale_s for c in given.classes] == [7, 7]


def test_widths_reach_as_far_as_the_profiles_do() -> None:
    gpus = ["T4", "V100", "A100", "RTX2080Ti", "QuadroRTX6000"]
    [job_class] = workload_from_trace(jobs_of("yolov3"), known_figures(), gpus).classes
    assert job_class.max_gpus == {
        "T4": 64,
        "V100": 40,
        "A100": 16,
        "RTX2080Ti": 24,
        "QuadroRTX6000": 4,
    }
    curve = job_class.epochs[0].speedups["V100"]
    assert isinstance(curve, Table)
    assert curve.widths == tuple(range(1, 41))


def test_a_class_that_was_not_measured_on_a_type_leaves_that_type_out() -> None:
    workload = workload_from_trace(jobs_of("ncf", "bert"), known_figures(), ["V100", "T4"])
    by_name = {c.name: c for c in workload.classes}
    assert set(by_name["neumf"].epochs[0].speedups) == {"T4"}
    assert set(by_name["bert"].epochs[0].speedups) == {"V100", "T4"}


def test_llama_starts_where_it_fits_without_offloading() -> None:
    trace = jobs_of("llama7", "llama30", "gpt2", steps=100)
    workload = workload_from_trace(trace, known_figures("rubick"), ["A800"])
    limits = {c.name: (c.min_gpus, c.max_gpus) for c in workload.classes}
    assert limits == {"llama7": (16, 64), "llama30": (24, 64), "gpt2": (1, 8)}
    llama7 = next(c for c in workload.classes if c.name == "llama7")
    assert llama7.epochs[0].work == pytest.approx(100 * 1.13078, rel=1e-4)
    assert llama7.epochs[0].speedups["A800"](64) == pytest.approx(1.13078 / 0.672942, rel=1e-4)


def test_offloading_below_sixteen_gpus_is_slower_and_dearer_for_llama7_than_sixteen() -> None:
    model = known_figures("rubick").applications["llama7"]
    assert isinstance(model, PlanFigures)
    plans = {p.gpus: p for p in model.devices["A800"]}
    for gpus in (1, 2, 4, 8):
        assert plans[gpus].plan == "zero-offload"
        assert plans[gpus].iteration_s > plans[16].iteration_s
        assert gpus * plans[gpus].iteration_s > 16 * plans[16].iteration_s


def test_models_that_fit_on_one_gpu_stay_inside_one_node() -> None:
    workload = workload_from_trace(jobs_of("t5", steps=1), known_figures("rubick"), ["A800"])
    curve = workload.classes[0].epochs[0].speedups["A800"]
    assert isinstance(curve, Table)
    assert curve.widths == (1, 2, 4, 8)  # at 6 only three nodes were measured


def test_rubick_keeps_the_fastest_plan_on_the_fewest_nodes(tmp_path: Path) -> None:
    folder = tmp_path / "iteration_times"
    folder.mkdir()
    (folder / "m.csv").write_text(
        "exec_plan,placement,iter_time\nga,1,4\ngc,1,3\nga,11,1\nzero-dp,2,2.5\n444,44,0\n"
    )
    model = read_profiles(tmp_path).applications["m"]
    assert isinstance(model, PlanFigures)
    assert [(p.gpus, p.plan, p.iteration_s) for p in model.devices["A800"]] == [
        (1, "gc", 3.0),
        (2, "zero-dp", 2.5),
    ]


def test_an_application_without_profiles_is_named_with_its_line_and_the_known_ones(
    tmp_path: Path, profiles: Path
) -> None:
    path = write_trace(tmp_path, "name,arrival_s,application\na,0,mymodel\nb,9,other\n")
    with pytest.raises(
        InputError, match=r"line 3 \(b\), column application: got 'other'.*: mymodel$"
    ):
        workload_from_files(path, profiles, ["H100"])


def test_a_gpu_type_without_profiles_is_named_with_the_known_ones(profiles: Path) -> None:
    with pytest.raises(InputError, match=r"gpus: got 'A100'.*H100"):
        workload_from_trace(jobs_of("mymodel"), read_profiles(profiles), ["H100", "A100"])
    with pytest.raises(InputError, match=r"gpus: got 'A800'.*T4, V100"):
        workload_from_trace(jobs_of("bert"), known_figures(), ["T4", "A800"])


def test_prices_and_rescaling_times_must_make_sense() -> None:
    with pytest.raises(InputError, match=r"prices\.T4: got 0"):
        workload_from_trace(jobs_of("bert"), known_figures(), ["T4"], prices={"T4": 0.0})
    with pytest.raises(InputError, match="rescale_s: got -1"):
        workload_from_trace(jobs_of("bert"), known_figures(), ["T4"], rescale=-1.0)


@pytest.mark.parametrize("gpus", [[], ["T4", "T4"]])
def test_gpu_types_must_be_given_once_each(gpus: list[str]) -> None:
    with pytest.raises(InputError, match="each GPU type once"):
        workload_from_trace(jobs_of("bert"), known_figures(), gpus)


def test_a_model_with_plans_needs_the_number_of_steps(tmp_path: Path) -> None:
    trace = read_trace(write_trace(tmp_path, "name,arrival_s,application\na,5,gpt2\n"))
    with pytest.raises(InputError, match=r"line 2 \(a\), column steps"):
        workload_from_trace(trace, known_figures("rubick"), ["A800"])


BAD: dict[str, tuple[str, Callable[[str], str], str]] = {
    "missing column": (
        "placements-H100.csv",
        lambda text: text.replace("sync_time", "sync"),
        r"no column 'sync_time'",
    ),
    "no number": (
        "placements-H100.csv",
        lambda text: text.replace("16,", "many,", 1),
        r"line 2, column local_bsz: got 'many'",
    ),
    "odd placement": (
        "placements-H100.csv",
        lambda text: text.replace(",44\n", ",4x4\n", 1),
        r"line 20, column placement: got '4x4'",
    ),
    "sync over step": (
        "placements-H100.csv",
        lambda text: text + "16,0.1,0.2,1\n",
        r"line 23, column sync_time: got 0.2",
    ),
    "step of zero": (
        "placements-H100.csv",
        lambda text: text + "16,0,0,1\n",
        r"line 23, column step_time: got '0'.*> 0",
    ),
    "empty": ("placements-H100.csv", lambda text: "", "an empty file"),
    "progress falls": (
        "validation-32.csv",
        lambda text: text.replace("250,", "50,", 1),
        r"line 3, column progress: got 50",
    ),
    "negative variance": (
        "validation-32.csv",
        lambda text: text.replace(",9,5", ",9,-5"),
        r"line 2, column grad_var: got '-5'",
    ),
    "an epoch short": (
        "validation-128.csv",
        lambda text: text.rsplit("\n", 2)[0] + "\n",
        r"1 epochs, validation-32.csv has 2",
    ),
}


@pytest.mark.parametrize(("name", "spoil", "message"), BAD.values(), ids=BAD)
def test_a_bad_profile_is_one_error_that_names_the_file_and_the_place(
    profiles: Path, name: str, spoil: Callable[[str], str], message: str
) -> None:
    path = profiles / "mymodel" / name
    path.write_text(spoil(path.read_text()))
    with pytest.raises(InputError, match=message) as error:
        read_profiles(profiles)
    assert name in str(error.value)


def test_a_folder_that_holds_no_profiles_is_a_file_error(tmp_path: Path, profiles: Path) -> None:
    with pytest.raises(FileError, match="no such folder"):
        read_profiles(tmp_path / "none")
    with pytest.raises(FileError, match="no profiles in it"):
        read_profiles(profiles / "mymodel")
    for path in (profiles / "mymodel").glob("validation-*"):
        path.unlink()
    with pytest.raises(FileError, match=r"no validation-B\.csv"):
        read_profiles(profiles)


def test_only_what_is_asked_for_is_read(profiles: Path) -> None:
    broken = profiles / "mymodel" / "placements-A100.csv"
    broken.write_text("junk")
    learned: Figures = read_profiles(profiles, applications=["mymodel"], gpus=["H100"])
    model = learned.applications["mymodel"]
    assert tuple(model.devices) == ("H100",)
    assert learned.gpu_names == ("A100", "H100")


def test_a_batch_size_beyond_reason_is_an_error_and_not_an_empty_memory(profiles: Path) -> None:
    path = profiles / "mymodel" / "validation-128.csv"
    for size in ("99999999999999", "0", "many"):
        path = path.rename(path.with_name(f"validation-{size}.csv"))
        with pytest.raises(FileError, match=f"batch size '{size}'"):
            read_profiles(profiles)


def test_widths_end_before_the_first_that_no_batch_size_fits(profiles: Path) -> None:
    path = profiles / "mymodel" / "validation-128.csv"
    path.rename(path.with_name("validation-56.csv"))  # 3 × 18 = 54 fits, 4 × 14 would be too small
    workload = workload_from_trace(jobs_of("mymodel"), read_profiles(profiles), ["H100"])
    assert workload.classes[0].max_gpus == 3


def test_the_notes_give_a_command_that_holds_for_every_copy_of_the_files(
    tmp_path: Path, profiles: Path
) -> None:
    path = write_trace(tmp_path, "name,arrival_s,application\na,5,mymodel\n")
    notes = workload_from_files(path, profiles, ["H100"], prices={"H100": 2.5}, rescale=9).notes
    command = "boa workload from-trace {0}/trace.csv --profiles {0}/profiles --gpus H100"
    expected = command.format(tmp_path.name) + " --rescale-s 9 --prices H100=2.5"
    assert f"Made by: {expected}" in notes
