# What can be imported from this room, and the file that each name is imported from.

from sfumato.mechanisms.sparse.data.item_sets import ItemSets as ItemSets
from sfumato.mechanisms.sparse.data.key_values import KeyValueEstimate as KeyValueEstimate
from sfumato.mechanisms.sparse.data.key_values import KeyValues as KeyValues
from sfumato.mechanisms.sparse.data.real_vectors import RealVectors as RealVectors
