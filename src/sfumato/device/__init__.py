"""The device SDK: a few lines to embed in an app, and a ledger that holds against any server.

>>> from sfumato.device import Device, Limits
>>> device = Device.open(":memory:", Limits(epsilon=2.0))
>>> device.left
2.0
"""

from __future__ import annotations

from sfumato.device.errands import Flushed
from sfumato.device.limits import Limits
from sfumato.device.sdk import Device
from sfumato.device.transport import Delivery, Http, Patient, Transport

__all__ = ["Delivery", "Device", "Flushed", "Http", "Limits", "Patient", "Transport"]
