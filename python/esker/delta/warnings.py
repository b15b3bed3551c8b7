"""The names of `deltalake.warnings`."""

from typing import TYPE_CHECKING

from .missing import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, ["ExperimentalWarning"])
