"""How work grows with rows, fragments and columns, and over a network: docs/performance.md is written by it."""
