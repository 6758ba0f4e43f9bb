"""What processes answer in tests of `boa.worker_process`: they import it by its name."""

import os
import time

from boa.worker_process import Tell


def counted(question: int, tell: Tell) -> tuple[int, int]:
    """Counts up to the question; who it was. Of a negative one, never done."""
    for number in range(question):
        tell(number)
    if question < 0:
        tell(os.getpid())
        time.sleep(3600)
    return question, os.getpid()


def environment(question: int, tell: Tell) -> dict[str, str]:
    """Return the environment that the process sees."""
    return dict(os.environ)
