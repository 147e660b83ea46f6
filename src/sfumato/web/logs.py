"""The operator's log: one line of JSON for each event, with no secret, body or report in it."""

from __future__ import annotations

import sys
from typing import Any

import structlog

__all__ = ["log", "to_stderr"]


def to_stderr() -> None:
    """Write events to stderr, as lines of JSON."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def log() -> Any:
    """Return the logger."""
    return structlog.get_logger()
