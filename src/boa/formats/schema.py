"""JSON Schemas (draft 2020-12) of the workload file and the plan file.

For editors and validators. The readers check more than a schema can say (names that must match,
shares that sum to 1, bases below limits) and word their errors better; a test keeps the two from
drifting apart.
"""

from boa.formats.schema_parts import DRAFT, NAME, Schema, number, object_of
from boa.formats.workload import MAX_WIDTH, VERSION
from boa.model.workload import BILLINGS, DEFAULT_MAX_GPUS


def workload_schema() -> Schema:
    """The schema of the workload file."""
    return {
        "$schema": DRAFT,
        "title": "BOA workload",
        "description": "Which GPU types can be rented at which price, and which job classes "
        "arrive: all that a plan is made from. Durations are seconds, rates per hour, money USD.",
        **object_of(
            required={
                "version": {"const": VERSION, "description": "The version of this format."},
                "gpu_types": {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": NAME,
                    "additionalProperties": {"$ref": "#/$defs/gpu_type"},
                    "description": "GPU types that can be rented, by name.",
                    "examples": [{"T4": {"price": 1.088, "gpus_per_node": 4}}],
                },
                "classes": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"$ref": "#/$defs/job_class"},
                    "description": "Job classes; each needs a name of its own.",
                },
            }
        ),
        "$defs": {
            "gpu_type": _gpu_type(),
            "job_class": _job_class(),
            "epoch": _epoch(),
            "speedup": _speedup(),
            "gpu_limit": _gpu_limit(),
        },
    }


def plan_schema() -> Schema:
    """The schema of the plan file."""
    return {
        "$schema": DRAFT,
        "title": "BOA plan",
        "description": "For every class, which share of its jobs runs on which GPUs in every "
        "epoch. `boa plan` writes it, `boa evaluate` reads it. Only `classes` is needed; figures "
        "such as spend_per_hour follow from the plan and are not read back.",
        "type": "object",
        "required": ["classes"],
        "properties": {
            "version": {"const": VERSION},
            **_plan_rules(),
            **_plan_figures(),
            "classes": {
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/class_plan"},
                "description": "One entry per class of the workload.",
            },
        },
        "$defs": {
            "class_plan": _class_plan(),
            "variant": _variant(),
            "route": _route(),
            "share": number("A share of the class's jobs; the shares sum to 1.", minimum=0),
            "width": number("How many GPUs a job runs on (k).", minimum=1),
        },
    }


def _gpu_type() -> Schema:
    price = "USD per GPU and hour. With every price 1, a budget counts GPUs."
    node = "GPUs on one node: what `--billing node` pays for at once."
    return {
        **object_of(
            required={},
            optional={
                "price": number(price, exclusiveMinimum=0, default=1),
                "gpus_per_node": {
                    "type": "integer",
                    "minimum": 1,
                    "default": 1,
                    "description": node,
                },
            },
        ),
        "type": ["object", "null"],
        "description": "A kind of GPU that can be rented (h).",
    }


def _job_class() -> Schema:
    weight = "How much a second of this class's JCT counts in the objective (w)."
    rescale = (
        "Mean time of one rescaling: checkpoint, stop, restart on other GPUs (r). The first "
        "start of a job is one. GPUs are paid for while it lasts."
    )
    limit = {"$ref": "#/$defs/gpu_limit"}
    return {
        "description": "Jobs that share model and data (i).",
        **object_of(
            required={
                "name": {**NAME, "description": "A name that no other class has."},
                "arrivals_per_hour": number("Jobs that arrive per hour (λ).", minimum=0),
                "epochs": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"$ref": "#/$defs/epoch"},
                    "description": "Stretches of training, in order.",
                },
            },
            optional={
                "weight": number(weight, exclusiveMinimum=0, default=1),
                "rescale_s": number(rescale, minimum=0, default=0),
                "min_gpus": {
                    **limit,
                    "default": 1,
                    "description": "The smallest width on which the class can run (its base).",
                },
                "max_gpus": {
                    **limit,
                    "default": DEFAULT_MAX_GPUS,
                    "description": "The largest width it may run on.",
                },
                "max_jct_s": {
                    "type": ["number", "null"],
                    "exclusiveMinimum": 0,
                    "description": "A cap on the mean JCT of the class.",
                },
            },
        ),
    }


def _gpu_limit() -> Schema:
    width = {"type": "integer", "minimum": 1, "maximum": MAX_WIDTH}
    return {
        "oneOf": [
            width,
            {"type": "object", "minProperties": 1, "additionalProperties": width},
        ],
        "description": "A number of GPUs; or one per GPU type, such as {T4: 1, A100: 2}.",
    }


def _epoch() -> Schema:
    return {
        "description": "A stretch of training with one speedup curve per GPU type (j).",
        **object_of(
            required={
                "work_s": number(
                    "Mean inherent work: seconds it takes at speed 1 (X).", exclusiveMinimum=0
                ),
                "speedup": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {"$ref": "#/$defs/speedup"},
                    "description": "One curve per GPU type. A type left out cannot run this epoch.",
                },
            }
        ),
    }


def _speedup() -> Schema:
    parallel = "Amdahl's law: 1 / ((1 − f) + f/k), f the share of work that runs in parallel."
    table = (
        "Measured speedups by width: linear between the points, flat after the last; no width "
        "below the first point runs."
    )
    kinds: Schema = {
        "table": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": "^[0-9]*[1-9][0-9]*$"},
            "additionalProperties": number("Speedup at this width.", exclusiveMinimum=0),
            "description": table,
            "examples": [{"1": 1.0, "2": 1.9, "4": 3.4, "8": 5.5}],
        },
        "amdahl": number(parallel, minimum=0, maximum=1),
        "power": number("k to this power.", minimum=0, maximum=1),
    }
    scale = "Multiplies the curve: how much faster this GPU type is."
    return {
        "description": "Rate of inherent work at width k, s(k): one of three curves.",
        **object_of(
            required={},
            optional={**kinds, "scale": number(scale, exclusiveMinimum=0, default=1)},
        ),
        "oneOf": [{"required": [kind]} for kind in kinds],
    }


def _plan_rules() -> Schema:
    return {
        "rescaling": {
            "type": "boolean",
            "default": True,
            "description": "Whether rescaling takes its time, or none (--no-rescaling).",
        },
        "routing": {
            "enum": ["class", "epoch", "migrate"],
            "default": "class",
            "description": "Whether a job keeps its GPU type, has it drawn anew in every epoch, "
            "or may migrate between types.",
        },
        "billing": {
            "enum": list(BILLINGS),
            "default": "gpu",
            "description": "Whether GPUs or whole nodes are paid for.",
        },
    }


def _plan_figures() -> Schema:
    return {
        "solver": {"type": "string", "description": "exact, glue or milp."},
        "budget_per_hour": number("The budget that was given."),
        "spend_per_hour": number("What the plan spends on average."),
        "average_jct_s": number("Mean JCT over all jobs: Σ λ T / Σ λ."),
        "objective_s": number("What is minimised: Σ w λ T / Σ w λ."),
        "lower_bound_s": number("No plan under these rules and this budget is below it."),
        "gap": number("objective_s / lower_bound_s − 1."),
        "proven_optimal": {"type": "boolean"},
        "shadow_price_s": number("Seconds of objective that one more dollar per hour buys (μ)."),
        "cheapest_per_hour": number("The least spend that keeps up with the workload."),
        "solve_time_s": number("How long the solver took."),
        "cluster": {
            "type": "object",
            "description": "GPUs in use per type, under Poisson arrivals.",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "mean": {"type": "number"},
                    "std": {"type": "number"},
                    "p95": {"type": "number"},
                },
            },
        },
    }


def _class_plan() -> Schema:
    return {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {**NAME, "description": "A class of the workload."},
            "average_jct_s": number("Mean JCT of the class."),
            "spend_per_hour": number("What the class spends on average."),
            "cost_per_job": number("USD."),
            "rescalings": number("Per job, the start included."),
            "cheapest_jct_s": number("Mean JCT if the class ran as cheaply as it can."),
            "cheapest_cost_per_job": number("USD, if the class ran as cheaply as it can."),
            "variants": {
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/variant"},
                "description": "Ways through training; a job draws one at arrival and keeps it.",
            },
            "epochs": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/route"}},
                "description": "Under per-epoch routing: for every epoch, the routes of its jobs.",
            },
        },
        "oneOf": [{"required": ["variants"]}, {"required": ["epochs"]}],
    }


def _variant() -> Schema:
    per_epoch: Schema = {"type": "array", "minItems": 1}
    return {
        **object_of(
            required={
                "share": {"$ref": "#/$defs/share"},
                "widths": {
                    **per_epoch,
                    "items": {"$ref": "#/$defs/width"},
                    "description": "GPUs in each epoch: one number per epoch of the class.",
                },
            },
            optional={
                "gpu_type": {**NAME, "description": "The type it runs on in every epoch."},
                "gpu_types": {
                    **per_epoch,
                    "items": NAME,
                    "description": "For a job that migrates: one type per epoch.",
                },
            },
        ),
        "oneOf": [{"required": ["gpu_type"]}, {"required": ["gpu_types"]}],
    }


def _route() -> Schema:
    return object_of(
        required={
            "share": {"$ref": "#/$defs/share"},
            "gpu_type": NAME,
            "width": {"$ref": "#/$defs/width"},
        }
    )
