"""Checks of a mechanism's contrasts for the shuffle model, against its whole law."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

import numpy as np

from sfumato.accounting.shuffle import best, delta_above, delta_below
from sfumato.arrays import Array, Floats
from sfumato.checks.listing import laws_of
from sfumato.checks.verdict import demand
from sfumato.core.contrast import Contrasts, Cover, listed
from sfumato.core.exact import log_below
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError

__all__ = ["others_cover_as_stated", "shuffled_reports_hide_as_stated"]


_LISTED: Final = 32  # the largest number of inputs of which all triples are checked
_ROUNDED: Final = 1e-8


def shuffled_reports_hide_as_stated(mechanism: Mechanism) -> None:
    """The contrasts for the shuffle model cover every pair of inputs."""
    if _tells_the_whole_law(mechanism):
        return
    for whole in listed(mechanism, triples=0):
        for known in mechanism.contrasts():
            for n, share in ((5, 0.4), (200, 0.1)):
                epsilon = share * log_below(mechanism.worst_ratio)
                delta = delta_above(whole.bounding, n, epsilon)
                demand(
                    bool(known.assumption)
                    or delta_above(known.bounding, n, epsilon) >= delta * (1 - 1e-3),
                    f"the reports of {n} people tell more than the contrasts say",
                )
                demand(
                    bool(known.attained_if)
                    or delta_below(known.attained, n, epsilon) <= delta * (1 + 1e-3),
                    f"the reports of {n} people tell less than the contrasts say",
                )


def others_cover_as_stated(mechanism: Mechanism) -> None:
    """For every two inputs and a third one, others' reports cover at least as much as stated.

    The bounds that use this also stay above what some people's reports attain.
    """
    if _tells_the_whole_law(mechanism) or len(_inputs(mechanism)) > _LISTED:
        return
    for known in mechanism.contrasts():
        if known.cover is None:
            continue
        table = _Favours.of(mechanism, known.cover)
        if table is not None:
            table.hold(mechanism, known.cover)
        _bounds_stay_above(mechanism, known)


def _tells_the_whole_law(mechanism: Mechanism) -> bool:
    """Return whether a mechanism uses the base class's contrasts, which list the whole law."""
    return getattr(mechanism.contrasts, "__func__", None) is Mechanism.contrasts


def _inputs(mechanism: Mechanism) -> Any:
    try:
        return mechanism.inputs()
    except ConfigurationError:
        return range(_LISTED + 1)


def _bounds_stay_above(mechanism: Mechanism, known: Contrasts) -> None:
    reached = (*known.reached, *(one for whole in listed(mechanism) for one in whole.attained))
    for n, delta in ((300, 1e-3), (20_000, 1e-6)):
        bound = best(mechanism, n, delta)
        if bound.epsilon is None or bound.assumes or known.attained_if:
            continue
        above = bound.epsilon * (1 + 1e-6)
        attained = delta_below(reached, n, above)
        demand(
            attained <= delta,
            f"{n} people reach delta {attained:.2g} at the epsilon {above:.4g} of {bound.bound}, "
            f"which promises {delta:g}",
        )


class _Favours:
    """A table of which inputs favour which reports; equally likely reports are left out.

    Parameters
    ----------
    base
        The base measure of each kind of report.
    favour
        Whether each kind of report is favoured, with one column for each input.

    """

    def __init__(self, base: Array, favour: Floats) -> None:
        self.base, self.favour = base, favour

    @classmethod
    def of(cls, mechanism: Mechanism, cover: Cover) -> _Favours | None:
        """Return the table from the whole law; None if reports merge several favoured kinds."""
        laws = laws_of(mechanism)
        chances = np.concatenate(
            [np.stack([law.probabilities for law in by_input], axis=1) for by_input in laws]
        ) / len(laws)
        low, high = chances.min(axis=1), chances.max(axis=1)
        telling = high > low * (1 + _ROUNDED)
        ratio = float(cover.ratio)
        favour = chances > (low * (1 + _ROUNDED))[:, None]
        stated = low[:, None] * np.where(favour, ratio, 1.0)
        if not np.allclose(chances[telling], stated[telling], rtol=_ROUNDED, atol=0):
            return None
        # Reports that all inputs favour look like reports that none favours; both counts are right.
        norm = 1 + (ratio - 1) * cover.accepted
        mixed, alike = float(low[telling].sum()), float(low[~telling].sum())
        demand(
            norm * (mixed + alike) >= 1 - _ROUNDED
            and norm * (mixed + alike / ratio) <= 1 + _ROUNDED,
            f"an input is said to favour {cover.accepted:.6g} of the reports, against the law",
        )
        kinds, where = np.unique(favour[telling], axis=0, return_inverse=True)
        base = np.bincount(where.ravel(), norm * low[telling], minlength=len(kinds))
        return cls(base, kinds.astype(np.float64))

    def pairs(self) -> Iterator[tuple[int, int, float, Floats]]:
        """Yield each pair of inputs, how far apart they are, and what each input exposes of that.

        Two inputs are apart by half of the base measure of the reports that one of them favours and
        the other does not; a third input exposes those of them that it does not favour itself.
        """
        for first, second in combinations(range(self.favour.shape[1]), 2):
            apart = self.base * (self.favour[:, first] != self.favour[:, second])
            yield first, second, float(apart.sum()) / 2, apart @ (1 - self.favour)

    def hold(self, mechanism: Mechanism, cover: Cover) -> None:
        """Raise CheckFailed if a pair is further apart, or a triple more exposed, than stated."""
        inputs = mechanism.inputs()
        for first, second, apart, exposed in self.pairs():
            pair = f"{inputs[first]!r} and {inputs[second]!r}"
            demand(
                apart <= cover.apart + _ROUNDED,
                f"{pair} are {apart:.6g} apart, more than {cover.apart:.6g}",
            )
            third = int(exposed.argmax())
            demand(
                exposed[third] <= cover.exposed + _ROUNDED or apart <= cover.plain + _ROUNDED,
                f"{inputs[third]!r} exposes {exposed[third]:.6g} of what tells {pair} apart, more "
                f"than {cover.exposed:.6g}",
            )
