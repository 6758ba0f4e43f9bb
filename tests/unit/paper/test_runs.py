"""Results of two versions of the code are told apart."""

from pathlib import Path

import boa
from boa.paper.runs import SIMULATING, simulating_files

PACKAGE = Path(boa.__file__).parent


def test_all_code_below_the_rooms_that_simulate_is_in_the_fingerprint() -> None:
    found = {Path(str(file)).relative_to(PACKAGE).as_posix() for file in simulating_files(PACKAGE)}
    assert {
        "policy/rivals/sia.py",
        "policy/rivals/_genetic.c",
        "policy/rivals/_genetic_state.h",
        "placement/pool.py",
    } <= found
    assert {"scheduler/money/ledger.py", "sim/simulator.py", "units.py"} <= found
    assert {"clouds/local.py", "paper/data.py"} <= found
    assert not any(name.startswith(("server/", "cli/")) for name in found)
    assert "paper/figures.py" not in found


def test_every_room_that_the_simulator_imports_is_in_the_fingerprint() -> None:
    imported = {
        line.split(".")[1].split(" ")[0]
        for room in SIMULATING
        for file in (PACKAGE / room).rglob("*.py")
        for line in file.read_text("utf-8").splitlines()
        if line.startswith("from boa.")
    }
    rooms = {name for name in imported if (PACKAGE / name).is_dir()}
    assert rooms - {"api", "train", "clouds"} <= set(SIMULATING)  # shapes and edges
