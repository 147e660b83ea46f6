# What can be imported from this room, and the file that each name is imported from.

from sfumato.streams.weave.curve import Curve as Curve
from sfumato.streams.weave.curve import online as online
from sfumato.streams.weave.curve import smoothed as smoothed
from sfumato.streams.weave.weave import Weave as Weave
from sfumato.streams.weave.weave_device import WeaveDevice as WeaveDevice
