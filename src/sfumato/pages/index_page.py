"""The page with all tasks: what state each is in, and which of two with one title is which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Final, Self
from urllib.parse import urlencode

from sfumato.core.field_checks import check_one_of
from sfumato.core.quantity import Quantity
from sfumato.errors import ConfigurationError
from sfumato.pages import document
from sfumato.pages.moments import element
from sfumato.pages.small_curves import sparkline
from sfumato.pages.subject import Columns

__all__ = ["LONGEST_SEARCH", "ORDERS", "STATES", "IndexPage", "IndexQuery", "TaskRow"]

ARCHIVED: Final = "archived"
"""The state of tasks that are listed only if somebody asks for them."""
STATES: Final = {
    "live": "live",
    "few": "wide or silent",
    "stale": "stale",
    "uncounted": "waits for the engine",
    "empty": "not begun",
    "over": "ended",
    ARCHIVED: "archived",
}
"""What the states of tasks are called."""

LONGEST_SEARCH: Final = 100
EMPTY: Final = (
    "<p>There is no public task yet. Publish one:</p><pre>sfumato task new my-task.toml\n"
    "sfumato task publish my-task.toml</pre>"
)


@dataclass(frozen=True)
class TaskRow:
    """A task in a few words."""

    name: str
    title: str
    state: str
    kind: str
    promise: str
    epsilon: float
    closed: int
    periods: int
    start: float
    closed_at: float | None
    reports: int
    readers: str
    quantity: Quantity
    curve: Columns | None
    """The curve of its largest item, if there is one."""


ORDERS: Final[dict[str, tuple[str, Callable[[TaskRow], Any]]]] = {
    "state": ("State", lambda row: list(STATES).index(row.state)),
    "title": ("Task", lambda row: row.title.casefold()),
    "epsilon": ("Epsilon", lambda row: -row.epsilon),
    "last": ("Last period", lambda row: -(row.closed_at or 0.0)),
    "reports": ("Reports", lambda row: -row.reports),
}
"""The columns that rows can be sorted by: their names and keys."""


@dataclass(frozen=True)
class IndexQuery:
    """Which tasks a visitor wants to see, and in which order."""

    search: str = ""
    state: str = ""
    sort: str = "state"

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Return what an address asks for; raise ConfigurationError if it makes no sense."""
        fields: dict[str, str] = {}
        for name, text in pairs:
            if name not in ("search", "state", "sort") or name in fields:
                raise ConfigurationError(
                    f"{name[:40]!r} is no field of this page, or there twice; it has search, state "
                    "and sort."
                )
            fields[name] = text
        query = cls(**{name: text for name, text in fields.items() if text})
        if query.state:
            check_one_of("state", query.state, STATES)
        check_one_of("sort", query.sort, ORDERS)
        if len(query.search) > LONGEST_SEARCH:
            raise ConfigurationError(f"search is longer than {LONGEST_SEARCH} characters.")
        return query

    def but(self, **changes: str) -> str:
        """Return the address of the same with some changes."""
        query = replace(self, **changes)
        fields = {"search": query.search, "state": query.state, "sort": query.sort}
        return "?" + urlencode({name: text for name, text in fields.items() if text})


@dataclass(frozen=True)
class IndexPage:
    """The page that lists tasks.

    Parameters
    ----------
    rows
        All tasks.
    query
        Which of them are shown.
    strangers
        The refused reports that belong to no task, in words.
    together
        What holds for a device that is in all of the tasks, in a sentence; empty for nothing.

    """

    rows: Sequence[TaskRow]
    query: IndexQuery
    strangers: str
    together: str = ""

    def html(self) -> str:
        """Return the page as HTML."""
        form, listed = (self._form(), self._table()) if self.rows else ("", EMPTY)
        together = f'<p id="together">{escape(self.together)}</p>' if self.together else ""
        return document.whole(
            "Tasks",
            f"""<header><h1>Tasks</h1></header>
<main data-again="5">{form}<div id="listed">{listed}</div>{together}
<p class="quiet" id="strangers">Reports that belong to no task, refused since the collector started:
{escape(self.strangers)}.</p>
<p class="quiet">Tasks that are not public are listed after <a href="/login">login</a>.</p></main>
<footer><p><a href="/ops">For the operator</a> · <a href="/openapi.json">The API</a></p>
</footer>""",
            scripts=["listing.js"],
        )

    def _form(self) -> str:
        """Return the links and the field that choose tasks."""
        counts = {name: sum(row.state == name for row in self.rows) for name in STATES}
        chosen = ' aria-current="true"'
        links = [("", f"all {len(self.rows) - counts[ARCHIVED]:,}")]
        links += [(name, f"{STATES[name]} {count:,}") for name, count in counts.items() if count]
        states = "".join(
            f'<li><a href="{escape(self.query.but(state=name))}" data-key="state-{name}"'
            f"{chosen * (self.query.state == name)}>{text}</a></li>"
            for name, text in links
        )
        return (
            f'<nav id="states" aria-label="State"><ul class="switch">{states}</ul></nav>'
            '<form method="get" class="line"><label>Search <input type="search" name="search" '
            f'maxlength="{LONGEST_SEARCH}" value="{escape(self.query.search)}" data-key="search">'
            f'</label><input type="hidden" name="state" value="{escape(self.query.state)}">'
            f'<input type="hidden" name="sort" value="{escape(self.query.sort)}">'
            '<button data-key="find">Find</button></form>'
        )

    def _table(self) -> str:
        """Return the table of the tasks that are chosen."""
        words = self.query.search.casefold().split()
        chosen = [
            row
            for row in self.rows
            if self._lists(row)
            and all(word in f"{row.title} {row.name} {row.kind}".casefold() for word in words)
        ]
        if not chosen:
            return '<p>No task is like this. <a href="/">Show all</a></p>'
        chosen.sort(key=ORDERS[self.query.sort][1])
        titles = [row.title for row in self.rows]
        body = "".join(self._row(row, twice=titles.count(row.title) > 1) for row in chosen)
        heads = [self._head(name) for name in ORDERS]
        head = "".join(
            [*heads[:2], '<th scope="col">Largest item</th><th scope="col">Values</th>', *heads[2:]]
        )
        return (
            f'<div class="wide"><table id="tasks"><thead><tr>{head}<th scope="col">Read by</th>'
            f"</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _lists(self, row: TaskRow) -> bool:
        """Return whether tasks in the state of a row are listed."""
        return row.state == self.query.state if self.query.state else row.state != ARCHIVED

    def _head(self, name: str) -> str:
        """Return the head of a column that can be sorted by."""
        number = ' class="number"' if name in ("epsilon", "reports") else ""
        here = self.query.sort == name
        order = "ascending" if name in ("state", "title") else "descending"
        sorted_so = f' aria-sort="{order}"' if here else ""
        return (
            f'<th scope="col"{number}{sorted_so}><a href="{escape(self.query.but(sort=name))}" '
            f'data-key="sort-{name}">{ORDERS[name][0]}</a></th>'
        )

    def _row(self, row: TaskRow, *, twice: bool) -> str:
        """Return the row of a task; two of one title differ by the start and the id."""
        begun = f'<br><span class="quiet">from {element(row.start)}, {row.name[:8]}</span>' * twice
        curve = "" if row.curve is None else sparkline(row.curve, 0, row.quantity)
        last = "none yet"
        if row.closed_at is not None:
            last = f"{row.closed:,} of {row.periods:,}, {element(row.closed_at, 'ago')}"
        return (
            f'<tr><td><span class="state {row.state}"><span class="dot" aria-hidden="true"></span> '
            f'{STATES[row.state]}</span></td><td><a href="/tasks/{row.name}" '
            f'data-key="{row.name[:12]}">{escape(row.title)}</a>{begun}</td>'
            f'<td>{curve}</td><td>{escape(row.kind)}</td><td class="number">{row.epsilon:g}'
            f'<br><span class="quiet">{escape(row.promise)}</span></td><td>{last}</td>'
            f'<td class="number">{row.reports:,}</td><td>{row.readers}</td></tr>'
        )
