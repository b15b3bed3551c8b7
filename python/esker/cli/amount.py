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


def number_or_name(text: str) -> int | str:
    """A version for argparse: a whole number from 0; or the name of a tag, or a time, which begin otherwise.

    Raises:
        argparse.ArgumentTypeError: The text is a number below 0, or nothing.

    Example:
        >>> from esker.cli.amount import number_or_name
        >>> number_or_name("12"), number_or_name("release")
        (12, 'release')
    """
    return text if text and text[0] != "-" and not text.isdigit() else amount(text)
