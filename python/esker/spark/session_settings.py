"""Settings of the session, as far as a Python data source can know them: Spark does not pass them to it.

On the driver, planning sees only the options. A task sees the settings of the session, since Spark sends them with each
job. A setting that was never set has Java's default: that of the driver's machine, or of Java's options.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from pyspark import TaskContext

from esker.delta.read.session_zone import zone_name
from esker.exceptions import InvalidArgumentError

__all__ = ["OVERWRITE_MODE", "ZONE", "machine_zone", "session_zone", "setting"]

ZONE = "spark.sql.session.timeZone"
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
_JAVA_VARIABLES = ("_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "SPARK_SUBMIT_OPTS")
_TOLD = re.compile(r"-Duser\.timezone=[\"']?([\w/+:-]+)")


def setting(name: str) -> str | None:
    """A setting of the session of the current task, None if it is not set, or outside of a task.

    Example:
        >>> from esker.spark.session_settings import ZONE, setting
        >>> setting(ZONE)
    """
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(name)


def session_zone(given: str | None, driver: str | None) -> str | None:
    """The zone of the session of the current task, None if it is not known.

    Args:
        given: The option `timezone`, which overrides the session.
        driver: The zone of the driver's machine.

    Example:
        >>> from esker.spark.session_settings import session_zone
        >>> session_zone("GMT+2", None), session_zone(None, "Europe/Berlin")
        ('+02:00', 'Europe/Berlin')
    """
    told = given or setting(ZONE) or _told(*(setting(name) for name in _JAVA_OPTIONS)) or driver
    return None if told is None else zone_name(told)


def machine_zone() -> str | None:
    """The default zone of Java on this machine, None if it cannot be determined."""
    told = _told(*(os.environ.get(name) for name in _JAVA_VARIABLES)) or os.environ.get("TZ", "").removeprefix(":")
    if not told:
        place = Path("/etc/localtime")
        told = "UTC" if not place.exists() else str(place.resolve()).partition("zoneinfo/")[2]
    try:
        return zone_name(told) if told else None
    except InvalidArgumentError:
        return None


def _told(*options: str | None) -> str | None:
    for text in options:
        found = _TOLD.search(text or "")
        if found is not None:
            return found[1]
    return None
