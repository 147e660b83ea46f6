"""Audits of black boxes: samples that contradict a claim of privacy, with any confidence.

`sfumato check` proves what a mechanism or a stream of this package promises. An audit needs nothing
but outputs, so it can be made of anything; it refutes, and never proves.
"""

from sfumato.audit.auditing import Audit, Evidence, audit
from sfumato.audit.boxes import calls_of, function_at, reports_of, transcripts_of

__all__ = [
    "Audit",
    "Evidence",
    "audit",
    "calls_of",
    "function_at",
    "reports_of",
    "transcripts_of",
]
