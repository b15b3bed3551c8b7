"""The process that Spark forks its Python workers from, with esker imported: one that was killed is back at once."""

from pyspark.daemon import manager

import esker.spark  # noqa: F401

if __name__ == "__main__":
    manager()
