"""One line on the physics of a run: what of the world is switched on, and what is not."""

from typing import TYPE_CHECKING

from boa.model.policies import POLICIES

if TYPE_CHECKING:
    from boa.sim.run import World
    from boa.sim.sweep import Asked


def physics_line(asked: "Asked", world: "World", policy: str | None = None) -> str:
    """`policy`: the one whose habits are told too."""
    from boa.amounts import duration

    on = [] if policy is None else _habits(asked, policy)
    if asked.noise:
        on.append(f"knowledge off by a factor of e^±{asked.noise:g}")
    elif asked.learning == "perfect":
        on.append("perfect knowledge")
    on.append(
        "each model's rescaling time"
        if world.rescale is None
        else f"rescaling {duration(world.rescale)}"
    )
    on.append("Sia's slowdown" if world.slowdown == "sia" else "no slowdown")
    optional = {
        "booting": duration(asked.provision_s) if asked.provision_s else "",
        "cold starts": duration(asked.cold_s) if asked.cold_s else "",
        "reclaiming": duration(asked.reclaim_s) if asked.reclaim_s else "",
        "interference": f"{asked.interference:g}" if asked.interference else "",
    }
    if asked.billing == "node":
        on.append("whole nodes billed")
    on += _limits(asked)
    on += [f"{name} {value}" for name, value in optional.items() if value]
    off = [name for name, value in optional.items() if not value]
    without = [f"without {', '.join(off)}"] if off else []
    return "; ".join([", ".join(on), *without, f"seed {asked.seed}"])


def _limits(asked: "Asked") -> list[str]:
    from boa.amounts import duration

    nodes = ", ".join(f"{count}×{gpu}" for gpu, count in asked.max_nodes.items())
    said = {
        f"at most {asked.max_spend or 0:g} an hour": asked.max_spend is not None,
        f"at most {nodes} nodes": bool(nodes),
        f"nodes kept warm {duration(asked.keep_warm_s)}": asked.keep_warm_s > 0,
        f"pacing over {asked.pacing_h:g} h" if asked.pacing_h else "": asked.pacing_h is not None,
    }
    return [words for words, true in said.items() if true]


def _habits(asked: "Asked", policy: str) -> list[str]:
    from boa.amounts import duration

    settings = asked.settings(policy, None)
    every = settings.interval_s
    habits = ["at events" if every is None else f"rounds of {duration(every)}"]
    if every is not None and POLICIES[policy].interval_s is None and asked.billing == "node":
        habits = [f"at events and every {duration(every)}"]
    learning = {
        "class": "classes learn together",
        "job": "each job learns alone",
        "service": "the service's profiler learns",
    }
    if settings.learning in learning:  # otherwise the predictions are named beside
        habits.append(learning[settings.learning])
    return habits
