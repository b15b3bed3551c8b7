"""The command `esker`: look at tables and files from a terminal."""

from .main import main

__all__ = ["main"]
