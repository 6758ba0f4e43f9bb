"""A figure as the bytes of a file, whatever kind its suffix asks for."""

from boa.model.workload import Workload
from boa.plots.curve import Curve
from boa.solver.solution import Solution


def frontier_picture(curve: Curve, suffix: str) -> bytes:
    if suffix.lower() == ".html":
        from boa.plots.html import frontier_page

        return frontier_page(curve).encode("utf-8")
    from boa.plots.frontier import draw_frontier
    from boa.plots.style import saved

    return saved(draw_frontier(curve), suffix)


def width_picture(workload: Workload, solution: Solution, suffix: str) -> bytes:
    from boa.plots.panels import panels_of

    panels = panels_of(workload, solution)
    if suffix.lower() == ".html":
        from boa.plots.html import width_page

        return width_page(panels).encode("utf-8")
    from boa.plots.style import saved
    from boa.plots.widths import draw_widths

    return saved(draw_widths(panels), suffix)
