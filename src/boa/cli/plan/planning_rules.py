"""Planning rules: options of every command that solves."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict

from boa.cli import shell
from boa.cli.options import BILLINGS, ROUTINGS, choice

if TYPE_CHECKING:
    from boa.model.workload import Billing
    from boa.solver.objective import Routing


class SolverRules(TypedDict):
    """Rules by the names that the solver has for them."""

    rescaling: bool
    routing: "Routing"
    billing: "Billing"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningRules:
    """Rules of a plan: changes and routes that it may have, and what is paid for."""

    no_rescaling: Annotated[
        bool,
        shell.Option(
            "--no-rescaling",
            help="Pretend that starting and changing GPUs takes no time (rescale_s = 0).",
        ),
    ] = False
    routing: Annotated[
        "Routing",
        choice(
            "--routing",
            ROUTINGS,
            "class: a job keeps its GPU type. migrate: it may change type between epochs, at "
            "the cost of a rescaling. epoch: the type is drawn anew in every epoch (the paper's "
            "theorem; needs --no-rescaling).",
        ),
    ] = "class"
    billing: Annotated[
        "Billing",
        choice(
            "--billing",
            BILLINGS,
            "gpu: pay for the GPUs used. node: pay for whole nodes (gpus_per_node).",
        ),
    ] = "gpu"

    def for_solver(self) -> SolverRules:
        return {
            "rescaling": not self.no_rescaling,
            "routing": self.routing,
            "billing": self.billing,
        }
