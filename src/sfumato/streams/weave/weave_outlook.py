"""What to expect of a task on Weave: mixes, mechanisms and numbers of changes, by exact error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from sfumato.core.intervals import z_score
from sfumato.core.outlook import Expected, Notice, Option, Outlook
from sfumato.streams.kinds import values_of
from sfumato.streams.pilot import Pilot
from sfumato.streams.weave.chaffed_weave import ChaffedWeave
from sfumato.streams.weave.expected import expected, expected_posterior, networks
from sfumato.streams.weave.mix import WORKLOADS, best_shares
from sfumato.streams.weave.plan_sentences import about_chaff, configuration
from sfumato.streams.weave.targets import enough_devices, enough_epsilon
from sfumato.streams.weave.threads import SNAPSHOT
from sfumato.streams.weave.weave import Weave
from sfumato.wire.values import TaskValues

__all__ = ["WeaveOutlook"]

QUERIES: Final = ("online", "history", "prefix", "ranges")
LADDER: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""The numbers of changes that are tried with a pilot."""
LONG: Final = 256
"""The number of periods from which sums are only computed if they are asked for."""
TUNED: Final = 128
"""The number of periods up to which shares are also chosen for the streams of a pilot."""
FEW_LOOKS: Final = 30
FEW_PEOPLE: Final = 200
PATH: Final = "path"


class WeaveOutlook(Outlook):
    """What to expect of a task over a horizon.

    Parameters
    ----------
    task
        The task as plain data.
    devices
        How many devices will take part.
    pilot
        Prior knowledge of people's streams. Without it, every device is assumed to make all the
        changes it may, at random times; with it, the number of changes is chosen as well.
    notice
        Called with a sentence on what is being computed.

    """

    def __init__(
        self,
        task: Mapping[str, Any],
        devices: int | None = None,
        pilot: Pilot | None = None,
        notice: Notice = lambda _: None,
    ) -> None:
        self.values = values_of(TaskValues.of_spec(task))
        self.periods, self.changes = int(task["periods"]), int(task["changes"])
        self.pilot = pilot or Pilot.assumed(self.values, self.periods, self.changes)
        self.queries = dict(task["queries"])
        super().__init__(task, self._made(task, "snapshots", self.changes), devices, notice)
        self.target = self.main
        self.shown = [
            name
            for name in QUERIES
            if name in ("online", "history") or name in self.queries or self.periods < LONG
        ]

    @property
    def workload(self) -> Any:
        """The queries as a workload: a name, or weights by name."""
        return next(iter(self.queries)) if len(self.queries) == 1 else self.queries

    # ---- the options -----------------------------------------------------------------------

    def option(
        self,
        name: str,
        stream: Weave,
        queries: Sequence[str] | None = None,
        decoder: str = "",
    ) -> Option:
        """Return an option with the errors of these queries."""
        asked = self.shown if queries is None else queries
        errors = expected(stream, self.devices, self.pilot.sample, asked, decoder=decoder)
        return Option(name, stream, self.devices, errors, self._fields(name, stream), "", decoder)

    def _fields(self, name: str, stream: Weave) -> dict[str, Any]:
        if isinstance(stream, ChaffedWeave):
            return {}  # the task's chaff chooses all of it
        fixed: dict[str, Any] = {"mechanism": stream.mechanism, "changes": stream.changes}
        if "history" in self.queries:
            fixed["decoder"] = "smoothed"
        if stream.aligned:
            return {**fixed, "protocol": name, "mix": None}
        mix = [list(pair) for pair in sorted(zip(stream.spans, stream.shares, strict=True))]
        return {**fixed, "protocol": "weave", "fan_out": None, "mix": mix}

    @cached_property
    def _unit(self) -> Mapping[str, Expected]:
        alone = self.made("snapshots", self.changes)
        return self.option("snapshots", alone, list(self.queries)).errors

    def score(self, option: Option) -> float:
        """Return the squared error of all queries, each relative to that of snapshots alone."""
        return sum(
            weight * option.errors[name].mse / self._unit[name].mse
            for name, weight in self.queries.items()
        )

    def made(
        self,
        name: str,
        changes: int,
        mechanism: str = "",
        periods: int | None = None,
        *,
        chaff: bool = False,
    ) -> Weave:
        """Return the stream of a named protocol, with the task's chaff or without."""
        task = self.task if chaff else {**self.task, "chaff": None}
        return self._made(task, name, changes, mechanism, periods)

    @staticmethod
    def _made(
        task: Mapping[str, Any],
        name: str,
        changes: int,
        mechanism: str = "",
        periods: int | None = None,
    ) -> Weave:
        asked = {
            **task,
            "protocol": name,
            "periods": periods or task["periods"],
            "changes": changes,
            "mechanism": mechanism or task["mechanism"],
        }
        left_out = ("mix",) if name in ("tree", "hierarchy") else ("mix", "fan_out")
        return Weave.chosen({key: asked[key] for key in asked if key not in left_out})

    def options(self) -> Iterator[Option]:
        """Yield Weave with each mechanism, snapshots alone, and the papers' levels."""
        changes = self._best_changes() if self.pilot.is_data else self.changes
        woven = self._default
        if changes != self.changes:
            woven = self.made("weave", changes, chaff=True)
        yield from self._with_chaff(woven)
        woven = self.made("weave", changes) if isinstance(woven, ChaffedWeave) else woven
        itself = "snapshots" if woven.spans == (SNAPSHOT,) else "weave"
        yield self.option(itself, woven)
        for name in ("snapshots", "tree", "hierarchy"):
            self.notice(name)
            stream = self.made(name, changes)
            if name != itself:
                yield self.option(name, stream)
        yield self.option("hierarchy", stream, decoder=PATH)
        if changes != self.changes:
            self.notice(f"weave, changes = {self.changes}")
            yield self.option("weave", self.made("weave", self.changes))
        self.notice("weave, for streams like these")
        tuned = min(self._tuned(changes), key=self.score, default=None)
        if tuned is not None:
            yield self.option("weave", tuned.stream)  # type: ignore[arg-type]
        if self.task["mechanism"] == "auto" and len(woven.spans) > 1:
            for mechanism in ("concord", "exsub"):
                if woven.carriers != (mechanism,):
                    self.notice(f"weave with {mechanism}")
                    yield self.option("weave", self.made("weave", changes, mechanism))
        if "mix" in self.task:
            self.notice("the mix of the task file")
            yield self.option("weave", Weave.chosen(self.task))

    def _with_chaff(self, woven: Weave) -> Iterator[Option]:
        if isinstance(woven, ChaffedWeave):
            yield self.option("weave with chaff", woven)
            self.notice("weave without chaff")

    @cached_property
    def _default(self) -> Weave:
        """The stream that runs if the task names no mix."""
        self.notice("weave")
        return self.made("weave", self.changes, chaff=True)

    def is_default(self, option: Option) -> bool:
        """Return whether an option is the default mix and there is no pilot.

        Without a pilot only the bound on changes is known, and the default mix is also good for
        quieter devices. With one, the option of least error is recommended.
        """
        return not self.pilot.is_data and option.stream is self._default

    def _tuned(self, changes: int) -> Iterator[Option]:
        """Yield Weave with each mechanism and the best shares for the streams of the pilot."""
        if not self.pilot.is_data or "shuffle" in self.task or self.periods > TUNED:
            return
        spans = [span for span in (1, 2, 4, 8, 16) if 2 * span <= self.periods]
        even = (1 / (len(spans) + 1),) * (len(spans) + 1)
        epsilon = self.task["epsilon"]
        asked = (self.values, self.periods, changes, epsilon, (*spans, SNAPSHOT), even)
        mechanisms: tuple[Any, ...] = ("concord", "exsub")
        named = self.task["mechanism"]
        for mechanism in mechanisms if named == "auto" else (named,):
            whole = Weave(*asked, mechanism, weights=self._default.weights)
            shares, _ = best_shares(networks(whole, self.pilot.sample), self.workload)
            yield self.option("weave", whole.trimmed(shares.tolist()), list(self.queries))

    def _best_changes(self) -> int:
        """Return the number of changes of least error; noise grows with it and bias falls."""
        least = self.values.least_changes
        most = max(self.pilot.most_changes, least)
        ladder = {s for s in (*LADDER, self.changes, most) if least <= s <= most} | {least}
        best, lowest, worse = self.changes, np.inf, 0
        for changes in sorted(ladder):
            self.notice(f"changes = {changes}")
            option = self.option("weave", self.made("weave", changes), list(self.queries))
            score = min(map(self.score, (option, *self._tuned(changes))))
            worse = worse + 1 if score > 1.001 * lowest else 0  # snapshots alone are a tie
            if score < lowest:
                best, lowest = changes, score
            if worse == 3:
                break
        return best

    # ---- targets ---------------------------------------------------------------------------

    def reach(self, best: Option, target: float) -> dict[str, float | None]:
        """Return the devices, the epsilon and the periods that would each reach a half width."""
        aim = (target / z_score(0.95)) ** 2
        factor = aim / best.errors[self.main].reported
        stream: Any = best.stream
        return {
            "devices": enough_devices(best, self.pilot.sample, self.main, aim),
            "epsilon": enough_epsilon(stream, self.main, factor),
            "periods": self._few_periods(stream, factor),
        }

    def _few_periods(self, stream: Weave, factor: float) -> int | None:
        """Return the longest horizon, by repeated halving, with a variance this small."""
        unit = stream.expected_variance(self.main)
        periods = self.periods
        while factor < 1:
            periods //= 2
            if periods < 2 or stream.changes > self.values.width * periods:
                return None
            shorter = self.made("weave", stream.changes, periods=periods)
            if shorter.expected_variance(self.main) / unit <= factor:
                break
        return periods

    def facts(self, best: Option) -> dict[str, Any]:
        """Return the cost of a second horizon, and what is known from the pilot."""
        stream: Any = best.stream
        return {
            "second_horizon": {
                "epsilon_spent": 2 * stream.epsilon,
                "error_factor_at_equal_epsilon": self._second_horizon(stream),
            },
            "posterior": {"rmse": self._posterior_rmse(stream)},
            "pilot": {
                "people": self.pilot.people if self.pilot.is_data else None,
                "epsilon": self.pilot.epsilon,
                "beyond_changes": self.pilot.beyond(stream.changes),
            },
        }

    def _second_horizon(self, stream: Weave) -> float:
        """Return the factor of errors if epsilon has to last for two horizons."""
        self.notice("a second horizon")
        halved = Weave.best(
            self.values,
            self.periods,
            stream.changes,
            stream.epsilon / 2,
            workload=self.workload,
            weights=self._default.weights,
        )
        ratio = halved.expected_variance(self.main) / stream.expected_variance(self.main)
        return float(ratio**0.5)

    def _posterior_rmse(self, stream: Weave) -> float | None:
        """Return the error of the posterior decoder, for curves like those of the pilot."""
        if self.periods > LONG:
            return None
        self.notice("the posterior")
        return expected_posterior(stream, self.devices, self.pilot.sample).rmse

    # ---- reasons and warnings --------------------------------------------------------------

    def reasons(self, options: tuple[Option, ...]) -> list[str]:
        """Return the reasons for recommending the first option, in sentences."""
        best = options[0]
        stream: Any = best.stream
        sentences = [configuration(stream), *about_chaff(options, self.main)]
        sentences += [*self._comparisons(options), *self._about_pilot(best)]
        online, history = best.errors["online"], best.errors["history"]
        if history.rmse < 0.97 * online.rmse:
            sentences.append(
                "Once all periods have closed, the smoothed decoder has "
                f"{history.rmse / online.rmse:.2f}x the online error, from the same reports."
            )
        sharper = self._posterior_rmse(stream)
        if sharper is not None and sharper < 0.97 * history.rmse:
            moves = "the pilot's" if self.pilot.is_data else "the calm ones that are assumed here"
            sentences.append(
                f"Under a prior, the posterior decoder has about {sharper / online.rmse:.2f}x the "
                f"online error on curves like {moves}."
            )
        second = self._second_horizon(stream)
        sentences.append(
            "A second horizon spends epsilon again: a device in both has "
            f"{2 * stream.epsilon:g}. If {stream.epsilon:g} has to last for both, errors are "
            f"{second:.2f}x as large."
        )
        return sentences

    def _comparisons(self, options: tuple[Option, ...]) -> Iterator[str]:
        best, query = options[0], self.main
        stream: Any = best.stream
        if stream.spans == (SNAPSHOT,):
            yield (
                f"With {stream.changes} changes over {self.periods} periods differences cost more "
                "than they tell: snapshots alone are best."
            )
        names = {
            ("snapshots", ""): "snapshots alone",
            ("tree", ""): "the aligned tree",
            ("hierarchy", ""): "the papers' hierarchy with all its reports fused",
            ("hierarchy", PATH): "the papers' hierarchy as printed",
        }
        ratios = [
            f"{best.errors[query].rmse / other.errors[query].rmse:.2f}x that of {name}"
            for other in options[1:]
            if (name := names.get((other.name, other.decoder)))
        ]
        if ratios:
            yield f"Its error is {', '.join(ratios)} ({WORKLOADS[query]})."

    def _about_pilot(self, best: Option) -> Iterator[str]:
        stream: Any = best.stream
        if not self.pilot.is_data:
            return
        error = best.errors[self.main]
        beyond = self.pilot.beyond(stream.changes)
        change = "" if stream.changes == self.changes else f" instead of {self.changes}"
        yield (
            f"changes = {stream.changes}{change}: {beyond:.1%} of the pilot's streams change "
            f"more often, which biases answers by {error.squared_bias**0.5:.2g} beside noise of "
            f"{error.variance**0.5:.2g}; with more, the noise grows faster than the bias falls."
        )

    def warnings(self, best: Option) -> list[str]:
        """Return warnings about the pilot, few snapshots and few changes."""
        return [*self._pilot_warnings(best), *self._few_looks(best), *self._few_changes(best)]

    def _pilot_warnings(self, best: Option) -> Iterator[str]:
        epsilon = best.stream.guarantee.epsilon
        if self.pilot.epsilon is not None:
            yield (
                f"Whoever was in the pilot has spent epsilon {self.pilot.epsilon:g} and with this "
                f"task spends {self.pilot.epsilon + epsilon:g} in all."
            )
        elif self.pilot.is_data:
            yield "The pilot's streams were read as they are: this plan does not protect them."

    def _few_looks(self, best: Option) -> Iterator[str]:
        stream: Any = best.stream
        share = dict(zip(stream.spans, stream.shares, strict=True)).get(SNAPSHOT, 0.0)
        looks = self.devices * share / (self.periods * len(self.values.blocks))
        if share and looks < FEW_LOOKS:
            yield (
                f"Only {looks:.1f} snapshots are expected in a period: intervals are rough below "
                f"{FEW_LOOKS}."
            )

    def _few_changes(self, best: Option) -> Iterator[str]:
        stream: Any = best.stream
        if self.values.always_there and stream.changes < self.values.least_changes + 2:
            yield (
                f"changes = {stream.changes} leaves no move: appearing counts "
                f"{self.values.least_changes}, and moving on counts two."
            )
        if not self.pilot.is_data:
            yield (
                f"Nothing says yet that {stream.changes} changes are enough; a device that has "
                "more is frozen for differences, which biases answers. A pilot tells by how much."
            )
        elif self.pilot.people < FEW_PEOPLE:
            yield (
                f"The pilot has {self.pilot.people} streams; with fewer than {FEW_PEOPLE} the "
                "number of changes is a guess."
            )
