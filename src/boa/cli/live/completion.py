"""`boa completion`: what makes a shell complete our commands and options."""

from typing import Annotated

from boa.cli import parsers, shell

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_BOA_COMPLETE"
"""As in `boa.cli`, which answers the shell."""


def completion(
    for_shell: Annotated[
        str,
        shell.Argument(
            metavar="bash|zsh|fish", help="Which shell.", parser=parsers.one_of("SHELL", SHELLS)
        ),
    ],
) -> None:
    """Print what makes a shell complete our commands and options.

    [bold]Examples[/bold]
    [dim]$[/dim] eval "$(boa completion bash)"            # in ~/.bashrc
    [dim]$[/dim] eval "$(boa completion zsh)"             # in ~/.zshrc
    [dim]$[/dim] boa completion fish > ~/.config/fish/completions/boa.fish
    """
    print(shell.completion_source(for_shell, "boa", VARIABLE))
