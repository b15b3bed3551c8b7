"""Numbers on a command line that count something."""

from __future__ import annotations

import argparse


def amount(text: str) -> int:
    """A number that is not negative, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is another text.

    Example:
        >>> from esker.cli.amount import amount
        >>> amount("12")
        12
    """
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, found {text!r}")
    return int(text)
