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
from sfumato.mechanisms.sparse.rivals.future_rand import FutureRand as FutureRand
from sfumato.mechanisms.sparse.rivals.pckv import PCKVAGRR as PCKVAGRR
from sfumato.mechanisms.sparse.rivals.pckv import PCKVGRR as PCKVGRR
from sfumato.mechanisms.sparse.rivals.pckv import PCKVUE as PCKVUE
from sfumato.mechanisms.sparse.rivals.sampled import KVUE as KVUE
from sfumato.mechanisms.sparse.rivals.sampled import PrivKV as PrivKV
from sfumato.mechanisms.sparse.rivals.signs import DDRM as DDRM
from sfumato.mechanisms.sparse.rivals.signs import EFMRTT as EFMRTT
from sfumato.mechanisms.sparse.rivals.signs import ToPLTernary as ToPLTernary
from sfumato.mechanisms.sparse.rivals.succinct import Succinct as Succinct
from sfumato.mechanisms.sparse.subset.privset import PrivSet as PrivSet
from sfumato.mechanisms.sparse.subset.signed_subset import Concord as Concord
from sfumato.mechanisms.sparse.subset.signed_subset import ExSub as ExSub
