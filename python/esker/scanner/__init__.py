"""Scanners: the scans that users build of a dataset or a fragment, under pylance's names."""

from .builder import ScannerBuilder
from .lance_scanner import LanceScanner

__all__ = ["LanceScanner", "ScannerBuilder"]
