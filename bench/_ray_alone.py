"""What a Ray user would write without BOA: every job a placement group of a fixed width.

    _ray_alone.py STREAM.json

Ray's autoscaler launches nodes for groups that wait, and takes idle nodes away. Prints a line of
JSON for every job that is over.
"""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import (
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

LOOK_S = 5.0


class Rank:
    def is_up(self) -> bool:
        return True

    def run(self, argv: list[str], env: dict[str, str]) -> int:
        return subprocess.run(argv, env=env, stdout=subprocess.DEVNULL).returncode


def run(job: dict[str, Any], gpu: str, speed: float) -> dict[str, Any]:
    """From its submission to its end, as a person would do it: wait for GPUs, start, wait."""
    submitted, width = time.time(), job["width"]
    group = placement_group([{"GPU": 1, gpu: 1}] * width, strategy="PACK")
    while not group.wait(LOOK_S):
        pass
    placed = time.time()
    nodes = set(placement_group_table(group)["bundles_to_node_id"].values())
    ranks = [_rank(group, gpu, bundle) for bundle in range(width)]
    ray.get([rank.is_up.remote() for rank in ranks])
    env = {
        "BOA_WIDTH": str(width),
        "BOA_NODES": str(len(nodes)),
        "BOA_GPU_TYPE": gpu,
        "BOA_SPEED": f"{speed:g}",
        "BOA_DECIDED_AT": f"{placed:.6f}",  # a start takes what it takes under BOA, from here on
    }
    code = ray.get(ranks[0].run.remote(job["run"], env))
    ended = time.time()
    for rank in ranks:
        ray.kill(rank)
    remove_placement_group(group)
    if code != 0:
        raise SystemExit(f"{job['name']}: exit code {code}")
    gpu_s = (ended - placed) * width
    return {"submitted_at": submitted, "ended_at": ended, "gpu_s": gpu_s}


def _rank(group: Any, gpu: str, bundle: int) -> Any:
    where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=bundle)
    kind = ray.remote(Rank)
    return kind.options(
        num_cpus=0, num_gpus=1, resources={gpu: 1}, scheduling_strategy=where
    ).remote()


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text())
    ray.init(address=given["address"], log_to_driver=False, logging_level="ERROR")
    began, jobs = time.monotonic(), given["jobs"]
    running = []
    with ThreadPoolExecutor(len(jobs)) as pool:
        for job in jobs:
            time.sleep(max(0.0, began + job["at_s"] - time.monotonic()))
            running.append(pool.submit(run, job, given["gpu"], given["speed"]))
        for future in running:
            print(json.dumps(future.result()), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
