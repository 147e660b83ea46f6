"""The OpenAPI document describes each object as its dataclass does."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.service.world import World

from sfumato.core.quantity import SHARE
from sfumato.service import openapi
from sfumato.service.asgi import make_app
from sfumato.service.schemas import schema_of
from sfumato.service.task_submission import PublishRequest
from sfumato.service.task_summary import TaskSummary
from sfumato.wire.questions import Question
from sfumato.wire.receipts import Receipt

SCHEMAS = openapi.document()["components"]["schemas"]


@dataclass
class Pet:
    """A pet.

    Parameters
    ----------
    name
        What it is called.

    """

    name: str
    kind: Literal["cat", "dog"]
    weight: float | None = None
    owners: tuple[str, ...] = ()
    tame: bool = True
    coat: Any = None


def test_types_defaults_and_descriptions_are_those_of_the_class() -> None:
    assert schema_of(Pet, complete=False, weight={"maximum": 90}) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "What it is called."},
            "kind": {"enum": ["cat", "dog"]},
            "weight": {"type": ["number", "null"], "maximum": 90},
            "owners": {"type": "array", "items": {"type": "string"}, "default": ()},
            "tame": {"type": "boolean", "default": True},
            "coat": {"type": "object"},
        },
        "required": ["name", "kind"],
    }
    assert len(schema_of(Pet)["required"]) == len(fields(Pet))


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (TaskSummary, SCHEMAS["Summary"]),
        (Receipt, SCHEMAS["Receipt"]),
        (PublishRequest, SCHEMAS["PublishRequest"]),
        (Question, SCHEMAS["Question"]["properties"]["question"]["anyOf"][1]),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_every_field_is_in_the_document_with_a_sentence_of_its_own(kind: Any, schema: Any) -> None:
    sentences = [each["description"] for each in schema["properties"].values()]
    assert list(schema["properties"]) == [field.name for field in fields(kind)]
    assert len(set(sentences)) == len(sentences)


def test_what_is_sent_is_what_is_said() -> None:
    assert set(Receipt().plain()) == set(SCHEMAS["Receipt"]["required"])
    assert set(asdict(SHARE)) == set(SCHEMAS["Answers"]["properties"]["quantity"]["required"])


def test_every_address_is_described_but_those_for_browsers_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    app: Any = make_app(world.service)
    world.store.close()
    there = {route.path for route in app._app.routes}  # noqa: SLF001
    described = set(openapi.document()["paths"])
    assert there - described == {"/login", "/static/{name}", "/openapi.json"}
    assert described <= there
