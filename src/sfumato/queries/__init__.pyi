# What can be imported from this room, and the file that each name is imported from.

from sfumato.core.answers import Answer as Answer
from sfumato.core.answers import Answers as Answers
from sfumato.queries.events import ROC as ROC
from sfumato.queries.events import Event as Event
from sfumato.queries.events import Watch as Watch
from sfumato.queries.events import roc as roc
from sfumato.queries.history import History as History
from sfumato.queries.postprocessing import at_most as at_most
from sfumato.queries.postprocessing import capped_simplex as capped_simplex
from sfumato.queries.postprocessing import clip as clip
from sfumato.queries.postprocessing import norm_sub as norm_sub
from sfumato.queries.postprocessing import postprocess as postprocess
from sfumato.queries.postprocessing import simplex as simplex
from sfumato.queries.top_items import top as top
