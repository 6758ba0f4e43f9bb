"""`boa trace`: make traces, see what is in one, and turn any into our own format."""

from boa.cli import shell
from boa.cli.simulate.trace_convert import convert
from boa.cli.simulate.trace_describe import describe
from boa.cli.simulate.trace_generate import generate

app = shell.Group("trace", "Make a trace, see what is in one, or turn one into our own format.")
app.add("generate")(generate)
app.add("convert")(convert)
app.add("describe")(describe)
