"""Another writer, who works while an operation of the store is under way."""

from __future__ import annotations

import threading
from collections.abc import Callable


def meanwhile(work: Callable[[], object]) -> None:
    """Another writer's work, from within a store operation of ours."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # Told by the thread that waits.
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
