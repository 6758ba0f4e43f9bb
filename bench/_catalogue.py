"""Put what `bench/gpu.py` measured into the catalogue: `_catalogue.py bench/out/gpu.json`."""

import json
import sys
from pathlib import Path
from typing import Any

from _gpu_models import models

TARGET = Path(__file__).resolve().parents[1] / "src" / "boa" / "catalogue" / "own.json"


def main() -> None:
    document = json.loads(Path(sys.argv[1]).read_text())
    tables = {table["title"]: table["rows"] for table in document["tables"]}
    machine = document["machine"]
    gpu = machine["gpu"].removeprefix("NVIDIA ")
    found: dict[str, Any] = {}
    for name, model in models().items():
        steps = next(rows for title, rows in tables.items() if title.startswith(f"{name}: step"))
        restarts = next(rows for title, rows in tables.items() if title.startswith(f"{name}: stop"))
        warm = next(row for row in restarts if row["how"] == "warm")
        times = {str(row["batch"]): float(f"{row['step_ms'] / 1e3:.4g}") for row in steps}
        rescale_s = float(f"{warm['total']:.3g}")
        found[name] = {gpu: {"batch": model.batch, "step_s": times, "rescale_s": rescale_s}}
    where = f"one {machine['gpu']}, torch {machine['torch']}, bf16 autocast"
    source = f"bench/gpu.py on {machine['date'][:10]}: {where}"
    TARGET.write_text(
        json.dumps({"version": 1, "source": source, "models": found}, indent=1) + "\n"
    )
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
