# What can be imported from this room, and the file that each name is imported from.

from sfumato.streams.window.curators import Step as Step
from sfumato.streams.window.curators import WindowCurator as WindowCurator
from sfumato.streams.window.curators import WindowEstimate as WindowEstimate
from sfumato.streams.window.filtered import history as history
from sfumato.streams.window.readings import Reading as Reading
from sfumato.streams.window.tiers import TieredEstimate as TieredEstimate
from sfumato.streams.window.tiers import Tiers as Tiers
from sfumato.streams.window.window import Window as Window
from sfumato.streams.window.window_device import WindowDevice as WindowDevice
from sfumato.streams.window.window_device import WindowLedger as WindowLedger
from sfumato.streams.window.window_methods import METHODS as METHODS
