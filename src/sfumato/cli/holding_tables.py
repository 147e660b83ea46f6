"""Tables with a row for each key of each person, blurred into one report per person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato import catalog
from sfumato.arrays import Array
from sfumato.cli.parameters import TypedParameters, build, read_as
from sfumato.core.domain import Domain
from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms.sparse import ItemSets, KeyValues
from sfumato.randomness import Source

if TYPE_CHECKING:  # pyarrow takes its time
    from sfumato.files import Table

__all__ = ["HeldColumns"]


@dataclass(frozen=True)
class HeldColumns:
    """Tables with a row for each key of each person."""

    person: str | None = None
    """The column that says to whom a row belongs."""
    key: str | None = None
    """The column of keys, or of the items of a set."""
    value: str | None = None
    """The column of values, from --low to --high."""
    keys: str | None = None
    """The public list of keys: a number, cat,dog,fish or @labels.txt."""

    @property
    def named(self) -> bool:
        """Whether any column or key was named."""
        return any((self.person, self.key, self.value, self.keys))

    def form(self, mechanism: str, typed: TypedParameters) -> KeyValues | ItemSets:
        """Return the form and its mechanism, with one entry for each key."""
        for option in ("person", "key", "keys"):
            if getattr(self, option) is None:
                msg = (
                    f"--{option} is missing; a table of keys needs --person, --key and the public "
                    "list --keys, and --value if keys have values."
                )
                raise ConfigurationError(msg)
        listed = read_as("keys", "int | tuple", self.keys or "")
        known = {parameter.name for parameter in catalog.parameters(mechanism)}
        rest = dict(typed)
        ends = {name: rest.pop(name) for name in ("low", "high") if self.value and name in rest}
        if "dimension" in known:
            rest.setdefault("dimension", str(Domain.of(listed).size))
        if "goal" in known:
            rest.setdefault("goal", "frequency")
        built: Any = build(mechanism, rest)
        if self.value is None:
            return ItemSets(built, listed)
        interval = {name: read_as(name, "float", end) for name, end in ends.items()}
        return KeyValues(built, listed, **interval)

    def randomize(self, table: Table, form: KeyValues | ItemSets, rng: Source) -> Array:
        """Return one report for each person of a file."""
        from sfumato.files import Kind

        labels = form.domain.labels
        words = any(isinstance(label, str) for label in labels)
        roles = {"person": self.person or "", "key": self.key or ""}
        kinds = {"person": Kind.TEXT, "key": Kind.TEXT if words else Kind.NUMBER}
        if self.value is not None:
            roles["value"], kinds["value"] = self.value, Kind.NUMBER
        held = table.columns({role: (roles[role], kinds[role]) for role in roles})
        try:
            if isinstance(form, KeyValues):
                return form.randomize(held, rng)
            return form.randomize(held, rng, item="key")
        except InputError as error:
            msg = f"{table.path}: {error}"
            raise InputError(msg) from error
