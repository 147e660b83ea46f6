# What can be imported from this room, and the file that each name is imported from.

from sfumato.plots.answer_plots import dots as dots
from sfumato.plots.contest_plots import contest as contest
from sfumato.plots.experiment_plots import repeated as repeated
from sfumato.plots.line_plots import bounds_over as bounds_over
from sfumato.plots.line_plots import curves as curves
from sfumato.plots.released_plots import errors as errors
from sfumato.plots.released_plots import means as means
from sfumato.plots.released_plots import timeline as timeline
from sfumato.plots.stream_plots import bands as bands
