# Every mechanism and its file, one line each: a new one needs its file and its line, nothing else.
# Whoever checks types reads these lines, and so does the package itself when it runs.

from sfumato.mechanisms.density.square_wave import SquareWave as SquareWave
from sfumato.mechanisms.frequency.adaptive import Adaptive as Adaptive
from sfumato.mechanisms.frequency.grr import GRR as GRR
from sfumato.mechanisms.frequency.olh import OLH as OLH
from sfumato.mechanisms.frequency.oue import OUE as OUE
from sfumato.mechanisms.frequency.subset_selection import SubsetSelection as SubsetSelection
from sfumato.mechanisms.mean.hybrid import Hybrid as Hybrid
from sfumato.mechanisms.mean.piecewise import Piecewise as Piecewise
from sfumato.mechanisms.mean.stochastic_rounding import StochasticRounding as StochasticRounding
from sfumato.mechanisms.sparse.hashed.coco import CoCo as CoCo
from sfumato.mechanisms.sparse.hashed.collision import Collision as Collision
from sfumato.mechanisms.sparse.subset.privset import PrivSet as PrivSet
from sfumato.mechanisms.sparse.subset.signed_subset import Concord as Concord
from sfumato.mechanisms.sparse.subset.signed_subset import ExSub as ExSub
