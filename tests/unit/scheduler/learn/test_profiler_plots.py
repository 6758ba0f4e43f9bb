"""What was learned of a class, as a picture and as text."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from boa.model.service import ClassPrior
from boa.plots.profile import draw_profile, profile_picture, profile_text
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.learn.rescaling import Told
from profiling import job, on, profile, profiler, ran, report, took

BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
NASTY = "[red]$x$[/nope] <b>漢字"


def learned() -> Profiler:
    of = profiler()
    of.arrived(job(epochs=2, max=16), 0.0)
    for epoch in range(2):
        ran(of, on("T4", 1), rate=10.0, epoch=epoch, seconds=100.0)
        ran(of, on("T4", 4), rate=30.0, epoch=epoch, seconds=3600.0)
        ran(of, on("T4", 4, 4), rate=45.0, epoch=epoch, seconds=900.0)
    return of


def document(of: Profiler, name: str = "net") -> dict[str, Any]:
    found = of.document(name, 0.0)
    assert found is not None
    return dict(found)


def in_terminal(text: str) -> str:
    out = io.StringIO()
    Console(file=out, width=120, no_color=True).print(text, highlight=False)
    return out.getvalue()


def test_a_document_says_what_was_measured_and_what_follows() -> None:
    found = document(learned())
    t4, a100 = found["gpu_types"]
    samples = {(s["width"], s["across_nodes"]): s for s in t4["samples"]}
    assert list(samples) == [(1, False), (4, False), (8, True)]
    assert samples[4, False]["rate"] == pytest.approx(30.0)
    assert samples[4, False]["speedup"] == pytest.approx(3.0, rel=0.01)
    assert samples[8, True]["reports"] == 2
    curve = dict(zip(t4["curve"]["widths"], t4["curve"]["speedup"], strict=True))
    assert curve[8] == pytest.approx(4.5, rel=0.01)
    assert (t4["tried"], t4["offered"], max(curve)) == (8, 16, 16)
    assert (a100["tried"], a100["samples"]) == (0, [])
    assert "the scaling of other classes" in found["prior"]


def test_the_least_width_has_a_speedup_of_one_and_its_sample_lies_on_the_curve() -> None:
    """Though GPUs do more across nodes, epochs differ, and one report saw no progress."""
    of = profiler()
    of.arrived(job(epochs=3, max=16), 0.0)
    for epoch, rate in enumerate((6.0, 10.0, 11.0)):
        ran(of, on("T4", 1), rate=rate, epoch=epoch, seconds=100.0 * (epoch + 1))
        ran(of, on("T4", 4), rate=rate * (4.0 if epoch == 1 else 3.0), epoch=epoch)
        ran(of, on("T4", 4, 4), rate=9.5 * rate, epoch=epoch, seconds=900.0)
    ran(of, on("T4", 1), rate=0.0, epoch=1, seconds=60.0)
    t4 = document(of)["gpu_types"][0]
    curve = dict(zip(t4["curve"]["widths"], t4["curve"]["speedup"], strict=True))
    assert curve[1] == 1.0
    for sample in t4["samples"]:
        assert sample["speedup"] == pytest.approx(curve[sample["width"]], rel=1e-9)


def test_a_sample_is_off_the_curve_by_as_much_as_a_profile_holds_it_back() -> None:
    known = profile({"T4": [0.0, 1.0, 2.0]})
    of = profiler(ClassPrior(name="net", profile=known, measured_weight=3.0))
    of.arrived(job(max=2), 0.0)
    ran(of, on("T4", 1), rate=16.0)
    t4 = document(of)["gpu_types"][0]
    (sample,) = t4["samples"]
    believed = t4["curve"]["rate"][0]
    assert believed == pytest.approx(2.0), "one report of 16 against three of 1, by logarithms"
    assert t4["curve"]["speedup"][0] == 1.0
    assert sample["rate"] == pytest.approx(16.0)
    assert sample["speedup"] == pytest.approx(16.0 / believed)


def test_rates_are_also_held_against_the_least_width_that_was_measured() -> None:
    of = profiler()
    of.arrived(job(max=16), 0.0)
    ran(of, on("T4", 2), rate=10.0)
    ran(of, on("T4", 4), rate=15.0)
    ran(of, on("T4", 4, 4), rate=25.0, seconds=1200.0)
    t4, a100 = document(of)["gpu_types"]
    assert t4["measured_from"] == 2
    ratios = [sample["measured_speedup"] for sample in t4["samples"]]
    assert ratios == pytest.approx([1.0, 1.5, 2.5])
    assert a100["measured_from"] is None
    text = in_terminal(profile_text(document(of)))
    assert "2.78 measured in 10 min, 1.50 × 2 GPUs" in text
    assert "1.85 measured in 10 min\n" in text, "it is what the others are held against"
    of = learned()
    ratios = [s["measured_speedup"] for s in document(of)["gpu_types"][0]["samples"]]
    assert ratios == pytest.approx([1.0, 3.0, 4.5])
    assert "× 1 GPU" not in in_terminal(profile_text(document(of))), "s(k) says so already"


def test_rescalings_by_part_and_noise_are_said_where_jobs_tell_of_them() -> None:
    of = learned()
    assert "rescaling " not in in_terminal(profile_text(document(of)))
    of.rescaled(job(), took(4.0))
    of.rescaled(job(), Told({"total": 4.0, "start": 1.5, "first_step": 0.5}))
    for epoch, noise in ((0, 120.0), (1, 4800.0)):
        told = replace(report(1.0, 0.0, epoch), metrics={"noise_scale": noise})
        of.reported(job(run=on("T4", 1)), None, told)
    text = in_terminal(profile_text(document(of)))
    assert "rescaling    on local: 4 s, measured 2×\n" in text
    assert "start 1.5 s (1×), first step 0.5 s (1×)\n" in text
    assert "noise scale  120 samples in epoch 1, 4,800 in epoch 2" in text


def test_where_a_class_starts_from_is_said_in_words() -> None:
    known = profile({"T4": [0.0, 1.0, 2.0]})
    of = profiler(ClassPrior(name="net", profile=known, measured_weight=5.0))
    of.arrived(job(), 0.0)
    assert document(of)["prior"] == "the profile net (T4), worth 5 reports at every width"
    of.arrived(job(2, job_class="other"), 0.0)
    assert "an hour on one GPU" in document(of, "other")["prior"]
    of.arrived(job(3, job_class="third", total_work=500.0), 0.0)
    assert "total work 500" in document(of, "third")["prior"]


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_a_picture_is_a_file_of_the_kind_asked_for(suffix: str) -> None:
    found = document(learned())
    drawn = profile_picture(found, suffix)
    assert drawn.startswith(BEGINNINGS[suffix])
    assert drawn == profile_picture(found, suffix)


def test_dots_lie_on_their_speedups_and_grow_with_the_time_measured() -> None:
    found = document(learned())
    (axes,) = draw_profile(found).axes
    drawn: list[Any] = list(axes.collections)
    dots = {int(d.get_offsets()[0, 0]): (d.get_offsets()[0, 1], d.get_sizes()[0]) for d in drawn}
    samples = found["gpu_types"][0]["samples"]
    assert {w: y for w, (y, _) in dots.items()} == {s["width"]: s["speedup"] for s in samples}
    assert dots[1][1] < dots[8][1] < dots[4][1]


def test_a_work_that_no_job_has_shown_is_not_told_as_a_number_of_units() -> None:
    of = profiler()
    of.arrived(job(), 0.0)
    ran(of, on("T4", 1), 5.0)
    assert "an unknown number of units in 1 epoch" in in_terminal(profile_text(document(of)))
    of.epoch_done(job(), 0, 600.0)
    assert "600 units in 1 epoch" in in_terminal(profile_text(document(of)))


def test_a_class_of_which_nothing_is_measured_has_a_picture_too() -> None:
    of = profiler()
    of.arrived(job(job_class=NASTY), 0.0)
    of.arrived(job(job_class="nowhere", types=("H100",)), 0.0)
    for name in (NASTY, "nowhere"):
        assert profile_picture(document(of, name), ".png").startswith(BEGINNINGS[".png"])
        assert name in in_terminal(profile_text(document(of, name)))


def test_in_the_terminal_every_width_that_was_measured_has_a_bar() -> None:
    text = in_terminal(profile_text(document(learned()))).partition("A100")[0]
    rows = {int(line.split()[0]): line for line in text.splitlines() if line.lstrip()[:1].isdigit()}
    assert "3.00 measured in 2 h" in rows[4]
    assert "across nodes" in rows[8]
    assert "not tried yet" in rows[16]
    assert rows[8].count("█") > rows[4].count("█") > rows[1].count("█") > 0
    assert rows[16].count("█") + rows[16].count("░") == 32, "perfect scaling is the longest"


def test_a_class_of_many_widths_fits_on_a_screen() -> None:
    of = profiler()
    of.arrived(job(), 0.0)
    for width in range(1, 65):
        ran(of, on("T4", *[4] * (width // 4), *[width % 4] * (width % 4 > 0)), rate=float(width))
    assert len(profile_text(document(of)).splitlines()) < 30
