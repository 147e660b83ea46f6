# What people import, one line each; a room is loaded when a name of it is first used.
# Whoever checks types reads these lines, and so does the package itself when it runs.

from sfumato.client.published_answers import Collector as Collector
from sfumato.core import Estimate as Estimate
from sfumato.core import Guarantee as Guarantee
from sfumato.core import Mechanism as Mechanism
from sfumato.core import Tallies as Tallies
from sfumato.core import Tally as Tally
from sfumato.core.stream import Stream as Stream
from sfumato.device import Device as Device
from sfumato.device import Limits as Limits
from sfumato.errors import SfumatoError as SfumatoError
from sfumato.mechanisms import *  # noqa: F403 -- each of them is public
from sfumato.mechanisms.central import DiscreteLaplace as DiscreteLaplace
from sfumato.mechanisms.central import NoisyMax as NoisyMax
from sfumato.mechanisms.central import SmoothQuantile as SmoothQuantile
from sfumato.mechanisms.sparse import ItemSets as ItemSets
from sfumato.mechanisms.sparse import KeyValues as KeyValues
from sfumato.mechanisms.sparse import RealVectors as RealVectors
from sfumato.queries import Answer as Answer
from sfumato.queries import History as History
from sfumato.queries import Watch as Watch
from sfumato.randomness import secure as secure
from sfumato.randomness import seeded as seeded
from sfumato.streams.flat import Flat as Flat
from sfumato.streams.kinds import Attributes as Attributes
from sfumato.streams.kinds import Binary as Binary
from sfumato.streams.kinds import Category as Category
from sfumato.streams.kinds import Items as Items
from sfumato.streams.published import Publisher as Publisher
from sfumato.streams.published import PublishingPlan as PublishingPlan
from sfumato.streams.published import Released as Released
from sfumato.streams.published import ToPL as ToPL
from sfumato.streams.weave import Weave as Weave
from sfumato.streams.window import Tiers as Tiers
from sfumato.streams.window import Window as Window

__version__: str
__all__: list[str]  # noqa: PYI035 -- the lines above
