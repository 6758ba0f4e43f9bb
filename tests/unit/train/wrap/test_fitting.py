"""Launchers get the job's width, and a port of its own."""

import re

import pytest

from boa.train.wrap import placeholders
from boa.train.wrap.fitting import fitted, is_fixed, uses_width

IN_JOB = {"BOA_WIDTH": "4", "MASTER_PORT": "20001"}


@pytest.mark.parametrize(
    ("command", "fits"),
    [
        (
            "torchrun train.py --lr 1",
            "torchrun --nproc-per-node=4 --master-port=20001 train.py --lr 1",
        ),
        (
            "/opt/bin/torchrun --nnodes=1 --nproc_per_node 8 train.py",
            "/opt/bin/torchrun --nproc-per-node=4 --master-port=20001 --nnodes=1 train.py",
        ),
        (
            "torchrun --standalone --nproc-per-node=gpu train.py",
            "torchrun --nproc-per-node=4 --standalone train.py",
        ),
        ("torchrun --master_port 5 t.py", "torchrun --nproc-per-node=4 --master_port 5 t.py"),
        (
            "python3 -m torch.distributed.run train.py",
            "python3 -m torch.distributed.run --nproc-per-node=4 --master-port=20001 train.py",
        ),
        (
            "accelerate launch --num_processes=2 train.py",
            "accelerate launch --num_processes=4 --main_process_port=20001 train.py",
        ),
        ("deepspeed --num_gpus 8 t.py", "deepspeed --num_gpus=4 --master_port=20001 t.py"),
        ("python train.py --gpus={width}", "python train.py --gpus=4"),
        ("python -m mine --nproc-per-node 2", "python -m mine --nproc-per-node 2"),
        ("torchrun --nproc-per-node {width} --standalone t.py",) * 1
        + ("torchrun --nproc-per-node 4 --standalone t.py",),
    ],
)
def test_a_launcher_starts_as_many_processes_as_the_job_has_gpus(command: str, fits: str) -> None:
    assert " ".join(fitted(command.split(), IN_JOB)) == fits


def test_outside_of_a_job_a_command_is_as_it_was_written() -> None:
    command = ["torchrun", "--nproc-per-node=8", "train.py"]
    assert fitted(command, {"MASTER_PORT": "1"}) == command


@pytest.mark.parametrize(
    ("word", "width", "filled"),
    [
        ("{8/width}", 2, "4"),
        ("{256/width}", 8, "32"),
        ("{16*width}", 3, "48"),
        ("{(width + 1) * 2 - 1}", 2, "5"),
        ("{9//width}", 2, "4"),
        ("{0.5*width}", 2, "1"),
        ("--batch={64/width},{width}", 4, "--batch=16,4"),
        ('{"width": 4, "lr": {16*width}}', 2, '{"width": 4, "lr": 32}'),
        ('{"a": {"b": 1}}', 2, '{"a": {"b": 1}}'),
        ("{1,2}", 2, "{1,2}"),
        ("{3/2}", 2, "{3/2}"),
        ("echo ${width} {}", 2, "echo ${width} {}"),
        ("{checkpoint}", 2, "{checkpoint}"),
        ("{width:02d}", 2, "{width:02d}"),
    ],
)
def test_placeholders_are_filled_in_and_other_braces_pass_untouched(
    word: str, width: int, filled: str
) -> None:
    assert placeholders.filled(word, width) == filled


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("{8/width}", "is 2.667 at 3 GPUs; expected a whole number"),
        ("{8/(width-3)}", "divides by zero"),
        ("{8/}{width/}", "cannot be evaluated"),
        ("{width**9}", "cannot be evaluated"),
        ("{" + "(" * 150 + "width}", "cannot be evaluated"),
        ("{width" + "+1" * 200 + "}", "has more than 200 characters"),
    ],
)
def test_a_placeholder_without_a_whole_number_is_named(word: str, problem: str) -> None:
    with pytest.raises(placeholders.Unfit, match=re.escape(problem)):
        placeholders.filled(word, 3)


def test_what_does_not_divide_is_told_how_to_be_rounded() -> None:
    with pytest.raises(placeholders.Unfit, match=re.escape("// (such as {8//width})")):
        placeholders.filled("{8/width}", 3)


@pytest.mark.parametrize(
    "text",
    [
        "1e308*1e308",
        "0",
        "-16*{width}",
        "width*",
        "__import__('os')",
        "{width}**99",
        "1e999",
        "a",
        "",
    ],
)
def test_samples_per_step_are_arithmetic_with_a_positive_result(text: str) -> None:
    with pytest.raises(placeholders.Unfit):
        placeholders.samples_per_step(text, 2)


@pytest.mark.parametrize("text", ["16*{width}", "{16*width}", "16 * width", "64/{width}"])
def test_samples_per_step_go_by_the_width(text: str) -> None:
    assert placeholders.samples_per_step(text, 2) == 32


def test_a_launcher_gets_its_processes_also_where_other_arguments_go_by_the_width() -> None:
    command = ["torchrun", "--nproc-per-node=2", "t.py", "--grad-accum", "{8/width}"]
    fits = fitted(command, {"BOA_WIDTH": "4"})
    assert fits == ["torchrun", "--nproc-per-node=4", "t.py", "--grad-accum", "2"]


def test_outside_of_a_job_placeholders_stand_for_one_gpu() -> None:
    assert fitted(["python", "t.py", "{8/width}"], {}) == ["python", "t.py", "8"]


@pytest.mark.parametrize(
    ("command", "fixed"),
    [
        ("torchrun --nproc-per-node=2 t.py", True),
        ("accelerate launch t.py --lr 1", True),
        ("torchrun --nproc-per-node {width} t.py", True),
        ("torchrun t.py --batch-size {64/width}", False),
        ("python t.py", True),
        ("python t.py --world {width}", True),
        ("python t.py --world={width} --batch-size={64/width}", False),
        ("torchrun t.py --batch-size {16*width}", False),
    ],
)
def test_a_command_that_calculates_nothing_from_the_width_has_a_fixed_batch_per_gpu(
    command: str, fixed: bool
) -> None:
    assert is_fixed(command.split()) == fixed


@pytest.mark.parametrize(
    ("command", "uses"),
    [
        ("torchrun t.py", True),
        ("python t.py --world {width}", True),
        ("sh -c torchrun\t--nproc-per-node=$BOA_WIDTH\tt.py", True),
        ("python t.py", False),
        ("python t.py --lr 1", False),
    ],
)
def test_a_command_uses_the_width_by_a_launcher_a_placeholder_or_the_variable(
    command: str, uses: bool
) -> None:
    assert uses_width(command.split(" ")) == uses


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("{8/widht}", "widht"),
        ("--batch={64//Width}", "Width"),
        ("{widht*16}", "widht"),
        ("{width-gpus}", "gpus"),
        ("{(world + 1) * 2}", "world"),
    ],
)
def test_an_unknown_name_in_arithmetic_is_refused_with_its_placeholder(
    word: str, name: str
) -> None:
    problem = f"has the unknown name {name!r} in it; expected numbers and width"
    with pytest.raises(placeholders.Unfit, match=re.escape(problem)) as refused:
        placeholders.filled(word, 2)
    assert refused.value.text in word
    assert refused.value.text.startswith("{")


@pytest.mark.parametrize(
    "word",
    [
        "{train/val}",
        "{cifar-10}",
        "{imagenet-1k}",
        "{step}",
        "{rank:02d}",
        "${8/widht}",
        "print(f'{n*16}')",
        '{"lr": 1}',
        "{print NR*2}",
    ],
)
def test_braces_that_are_no_arithmetic_pass_untouched(word: str) -> None:
    assert placeholders.filled(word, 2) == word
