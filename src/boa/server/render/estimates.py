"""The estimate of a job, as the API tells it: figures, and a sentence. Pure."""

from boa.api import estimates as answers
from boa.runtime.estimating import JobEstimate
from boa.scheduler.plan.job_estimate import Range, Stage, Way
from boa.scheduler.plan.priority_costs import PriorityCost, asked_in_words
from boa.scheduler.words.amounts import dollars, seconds


def estimate_document(found: JobEstimate) -> answers.JobEstimate:
    queue, probe = found.queue, found.probe
    return {
        "class": found.job_class,
        "basis": found.basis,
        "succeeded": found.jobs,
        "time_s": found.time_s,
        "cost_usd": found.cost_usd,
        "time_range": _range(found.times),
        "jct_s": found.jct_s,
        "jct_range": _range(found.jcts),
        "cost_range": _range(found.costs),
        "spread_jobs": found.spread_jobs,
        "ways": [_way(way) for way in found.ways],
        "before": None
        if queue is None
        else {
            "waiting": queue.waiting,
            "gpus": queue.gpus,
            "jobs": list(queue.jobs),
            "wait_s": queue.wait_s,
            "boot_s": queue.boot_s,
        },
        "displaces": [
            {
                "job": one.job,
                "gpus": one.gpus,
                "preempted": one.preempted,
                "seconds": one.seconds,
                "lost_s": one.lost_s,
                "cost_usd": one.usd,
            }
            for one in found.displaces
        ],
        "blocked": found.blocked,
        "put_off": None
        if found.put_off is None
        else {"until": found.put_off.until, "why": found.put_off.why},
        "probe": None
        if probe is None
        else {
            "gpu_type": probe.gpu,
            "width": probe.width,
            "seconds": probe.seconds,
            "cost_usd": probe.cost_usd,
        },
        "priorities": [priority_document(one) for one in found.priorities],
        "plan": found.plan,
        "words": in_words(found),
    }


def priority_document(found: PriorityCost) -> answers.PriorityCost:
    said: answers.PriorityCost = {
        "priority": found.priority,
        "weight": found.weight,
        "jct_s": found.jct_s,
        "cost_usd": found.usd,
        "others_s": found.others_s,
        "class_others_s": found.class_others_s,
        "class_usd_per_hour": found.class_usd_per_hour,
    }
    if found.note:
        said["note"] = found.note
    return said


def in_words(found: JobEstimate) -> str:
    name, probe = found.job_class, found.probe
    if found.basis is None and probe is not None:
        return (
            f"The time is unknown: no job of {name} has ended or reported progress. A probe on "
            f"{probe.width}×{probe.gpu} measures it in at most {seconds(probe.seconds)}, for at "
            f"most {dollars(probe.cost_usd)}."
        )
    if found.time_s is None or found.cost_usd is None:
        return f"No GPU type that can be rented here runs {name} within its limits."
    asked = asked_in_words(found.priority, found.priorities)
    said = f"{asked[0].upper()}{asked[1:]}. As a normal job about" if asked else "About"
    said += f" {seconds(found.time_s)} for {dollars(found.cost_usd)}"
    if found.times is not None and found.costs is not None:
        said += (
            f"; four of five take {seconds(found.times.low)} to {seconds(found.times.high)} and "
            f"{dollars(found.costs.low)} to {dollars(found.costs.high)}"
        )
        if found.jcts is not None and found.put_off is None and found.priority != "background":
            low, high = found.jcts.low, found.jcts.high
            said += f", and end {seconds(low)} to {seconds(high)} after they are submitted"
    return f"{said}, {_from(found)}.{_waits(found)}"


def _from(found: JobEstimate) -> str:
    if found.basis == "jobs":
        some = f"{found.jobs} jobs" if found.jobs > 1 else "the one job"
        return f"as {some} of {found.job_class} that succeeded did"
    if found.basis == "profile":
        return f"by the profile of {found.job_class}, which no job has shown yet"
    return f"by what jobs of {found.job_class} have reported so far"


def _waits(found: JobEstimate) -> str:
    queue = found.queue
    if found.put_off is not None:
        return f" It {found.put_off.why}."
    if queue is None:
        return ""
    who = f"{queue.waiting} jobs wait" if queue.waiting != 1 else "1 job waits"
    what = f"{queue.gpus} GPU{'s' if queue.gpus != 1 else ''}"
    before = f" {who} before it for {what}." if queue.waiting else ""
    if queue.wait_s is None:
        return f"{before} It is unknown when GPUs come free{_blocked(found)}."
    if queue.wait_s <= 0:
        return f"{before} It would start at once."
    return f"{before} It would start in about {seconds(queue.wait_s)}."


def _blocked(found: JobEstimate) -> str:
    return f": {found.blocked}" if found.blocked else ""


def _range(found: Range | None) -> answers.EstimateRange | None:
    return None if found is None else {"low": found.low, "high": found.high}


def _way(way: Way) -> answers.EstimateWay:
    return {
        "share": way.share,
        "time_s": way.time_s,
        "cost_usd": way.cost_usd,
        "stages": [_stage(stage) for stage in way.stages],
    }


def _stage(stage: Stage) -> answers.EstimateStage:
    return {
        "first_epoch": stage.first_epoch,
        "last_epoch": stage.last_epoch,
        "gpu_type": stage.gpu,
        "width": stage.width,
        "time_s": stage.time_s,
        "cost_usd": stage.cost_usd,
    }
