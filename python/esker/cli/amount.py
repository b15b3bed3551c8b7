"""Counts as arguments of a command line."""

from __future__ import annotations

import argparse


def amount(text: str) -> int:
    """A whole number from 0, for argparse.

    Raises:
        argparse.ArgumentTypeError: The text is not such a number.

    Example:
        >>> from esker.cli.amount import amount
        >>> amount("12")
        12
    """
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, found {text!r}")
    return int(text)
