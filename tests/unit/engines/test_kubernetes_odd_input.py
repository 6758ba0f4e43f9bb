"""Logs and templates that are not as they should be."""

from typing import Any

import pytest

from boa.engines.kubernetes.frames import LONGEST, MOST, Unframed
from boa.engines.kubernetes.template import read
from boa.errors import InputError


def test_a_line_that_never_ends_is_not_kept() -> None:
    frames, piece = Unframed(), b"x" * 1024
    for _ in range(1000):
        assert frames.feed(piece) == []
        assert len(frames._begun) <= MOST  # or each piece would be as dear as all before it
    assert frames.feed(b"0:5|not of its own line\n0:0|a\n") == [(0, 0, b"a\n")]


def test_what_follows_an_overlong_line_is_read_wherever_pieces_end() -> None:
    text = b"0:0|a\n" + b"1:0|" + b"x" * (2 * MOST) + b"\n!up\n0:2|b\n"
    for size in (1, 7, 1000, MOST, MOST + 1, len(text)):
        frames = Unframed()
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        found = [one for piece in pieces for one in frames.feed(piece)]
        assert b"".join(data for _, _, data in found) == b"a\nb\n"
        assert frames.up


def test_the_longest_line_of_ours_is_read() -> None:
    line = b"999999999:" + b"9" * 18 + b"|" + b"y" * LONGEST
    frames = Unframed()
    frames.feed(line[:5000])
    assert frames.feed(line[5000:] + b"\n") == [(999999999, 10**18 - 1, b"y" * LONGEST + b"\n")]


@pytest.mark.parametrize(
    "volume", [{}, {"emptyDir": {}}, {"name": None}, {"name": 5}, {"name": ""}]
)
def test_a_volume_has_a_name(volume: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"spec\.volumes"):
        read({"spec": {"volumes": [volume]}})


@pytest.mark.parametrize(
    "mount",
    [
        {"mountPath": "/data"},
        {"name": "v"},
        {"name": "v", "mountPath": ""},
        {"name": "v", "mountPath": "/boa"},
        {"name": "v", "mountPath": "//boa/run"},
        {"name": "v", "mountPath": "///boa"},
        {"name": "v", "mountPath": "/data/../boa/run"},
        {"name": "v", "mountPath": "/./boa/./launch/"},
        {"name": "v", "mountPath": "boa/run"},
        {"name": "v", "mountPath": "/../boa"},
    ],
)
def test_nothing_is_mounted_where_ours_is(mount: dict[str, Any]) -> None:
    job = {"name": "job", "volumeMounts": [mount]}
    with pytest.raises(InputError, match="volumeMounts"):
        read({"spec": {"volumes": [{"name": "v"}], "containers": [job]}})


def test_paths_of_mounts_are_compared_as_they_are_taken() -> None:
    mounts = [{"name": "v", "mountPath": path} for path in ("//dev/shm/", "/data/x/..", "/boat")]
    job = {"name": "job", "volumeMounts": mounts}
    template = read({"spec": {"volumes": [{"name": "v"}], "containers": [job]}})
    assert template.mounts() == ["/dev/shm", "/data", "/boat"]
    assert template.keeps("/data/checkpoints")
