"""The HTTP interface as an OpenAPI 3.1 document, from the objects that the service sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

from sfumato.core.answers import REMARKS
from sfumato.core.estimate import LARGEST_LEVEL
from sfumato.core.quantity import Quantity
from sfumato.pages.index_page import ORDERS, STATES
from sfumato.pages.taking import TAKEN
from sfumato.pages.wanted import LONGEST_SEARCH, SORTS, SPANS
from sfumato.queries.postprocessing import PROJECTIONS
from sfumato.service.answer_formats import FORMATS
from sfumato.service.openapi_examples import QUESTIONS, TASK
from sfumato.service.query_parameters import QUERIES
from sfumato.service.schemas import COUNT, TEXT, array, schema_of, table
from sfumato.service.task_submission import LATEST, LONGEST_GRACE, PublishRequest
from sfumato.service.task_summary import TaskSummary
from sfumato.streams.horizon import DECODERS
from sfumato.web.problems import MEDIA_TYPE
from sfumato.wire.questions import Question
from sfumato.wire.receipts import REASONS, Receipt
from sfumato.wire.reports import BATCH_TYPE

__all__ = ["document"]

JSON: Final = "application/json"
_PERIODS: Final = {"type": "integer", "minimum": 1, "maximum": 16_384}
_TASK: Final = "/v1/tasks/{task_id}"
_NAME: Final = {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,40}$"}


def document() -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, Any] = {}
    for operation in _OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = operation.plain()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sfumato collector",
            "version": version("sfumato"),
            "description": "Receives reports that devices have blurred, and answers from them.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _in(where: str, name: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a parameter of an address, in its path or in its query."""
    return {"name": name, "in": where, "schema": schema} | more


@dataclass(frozen=True)
class _Operation:
    """One operation of the HTTP interface.

    Parameters
    ----------
    method, path
        The method and the address.
    name, summary
        The name for programs, and a sentence for people.
    content
        The name of the schema of the response or, if it is not JSON, its media type.
    problems
        The status codes of refusals, beside those for an unknown task or a missing token.
    secure
        Whether a token is needed.
    status
        The status code of success.
    query
        The parameters in the query.
    body
        The media type and the schema of the request body.
    forms
        Further media types of the response.
    example
        An example of the request body.

    """

    method: str
    path: str
    name: str
    summary: str
    content: str
    problems: tuple[int, ...] = ()
    secure: bool = False
    status: int = 200
    query: list[dict[str, Any]] = field(default_factory=list)
    body: tuple[str, dict[str, Any]] | None = None
    forms: tuple[str, ...] = ()
    example: Mapping[str, Any] | None = None

    def plain(self) -> dict[str, Any]:
        """Return the operation in the form of the document."""
        of_task = "{task_id}" in self.path
        about = "The SHA-256 of the task's spec."
        task_id = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
        named = [_in("path", "task_id", task_id, required=True, description=about)] * of_task
        is_json = "/" not in self.content
        content = {JSON: _ref(self.content)} if is_json else {self.content: TEXT}
        codes = sorted({*self.problems, *[404] * of_task, *[401] * self.secure})
        problem = _content({MEDIA_TYPE: _ref("Problem")})
        file = {"type": "string", "format": "binary"}
        content |= {media: {"type": "object"} if media == JSON else file for media in self.forms}
        sent = {} if self.body is None else {"required": True} | _content(dict([self.body]))
        if self.example is not None:
            sent["content"][JSON]["example"] = self.example
        parts: dict[str, Any] = {
            "parameters": named + self.query,
            "requestBody": sent,
            "responses": {str(self.status): {"description": "Done."} | _content(content)}
            | {str(code): {"description": "Refused."} | problem for code in codes},
            "security": [{"token": []}, {}] if self.secure else [],
        }
        named_parts = {name: part for name, part in parts.items() if part}
        return {"operationId": self.name, "summary": self.summary} | named_parts


def _content(schemas: dict[str, Any]) -> dict[str, Any]:
    return {"content": {kind: {"schema": schema} for kind, schema in schemas.items()}}


_CONFIRM: Final = [_in("query", "confirm", TEXT, required=True, description="The task's id again.")]
_SINCE: Final = _in(
    "query",
    "since",
    {**_PERIODS, "minimum": 0, "default": 0},
    description="The last period that was heard of; those after it follow.",
)
_BARE: Final = _in(
    "query",
    "bare",
    {"type": "boolean", "default": False},
    description="Whether an event only says that a period has closed.",
)
_FIELDS: Final[dict[str, dict[str, Any]]] = {
    "query": {"enum": list(QUERIES), "default": "mean"},
    **{
        name: {"anyOf": [_PERIODS, {"type": "string", "format": "date-time"}]}
        for name in ("period", "first", "last", "before", "after")
    },
    "k": _PERIODS,
    "item": TEXT,
    "average": {"type": "boolean"},
    "simultaneous": {"type": "boolean"},
    "projection": {"enum": list(PROJECTIONS)},
    "decoder": {"enum": list(DECODERS), "default": DECODERS[0]},
    "level": {"type": "number", "exclusiveMinimum": 0, "maximum": LARGEST_LEVEL},
    "above": {"type": "number"},
    "rate": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5, "default": 0.01},
    "format": {"enum": list(FORMATS), "default": "json"},
}

_CHOICES: Final[dict[str, dict[str, Any]]] = {
    **{name: _FIELDS[name] for name in ("decoder", "projection", "above")},
    **dict.fromkeys(("first", "last", "page"), _PERIODS),
    "items": {"type": "string", "pattern": r"^[0-9]{0,9}(,[0-9]{0,9})*$"},
    "search": {"type": "string", "maxLength": LONGEST_SEARCH},
    "sort": {"enum": list(SORTS), "default": "value"},
    "span": {"enum": list(SPANS)},
}
"""What a visitor of a task's page chooses."""


def _exampled(name: str) -> dict[str, Any]:
    """Return a field of a question as a parameter, with its value in each example that has it."""
    examples = {
        key: {"summary": example.summary, "value": example.fields[name]}
        for key, example in QUESTIONS.items()
        if name in example.fields
    }
    return _in("query", name, _FIELDS[name], **({"examples": examples} if examples else {}))


_OPERATIONS: Final = (
    _Operation(
        *("get", "/v1/tasks", "listTasks", "List the tasks.", "Tasks"),
        problems=(400,),
        query=[
            _in("query", "archived", {"type": "boolean"}, description="Whether archived ones, too.")
        ],
    ),
    _Operation(
        *("post", "/v1/tasks", "publishTask", "Publish a task; for the operator.", "Summary"),
        problems=(400, 403, 408, 411, 413, 429, 503),
        secure=True,
        status=201,
        body=(JSON, _ref("PublishRequest")),
        example=TASK,
    ),
    _Operation("get", _TASK, "readTask", "The task as devices join it.", "Published"),
    _Operation(
        *("post", f"{_TASK}/reports", "uploadReports"),
        "Hand in a batch of reports; answered when all of them are safe.",
        "Receipt",
        problems=(400, 403, 408, 409, 411, 413, 415, 429, 503),
        body=(BATCH_TYPE, {"type": "string", "format": "binary"}),
    ),
    _Operation(
        *("get", f"{_TASK}/question", "readQuestion"),
        "What an interactive task asks now of whoever is free; null if nothing.",
        "Question",
    ),
    _Operation(
        *("post", f"{_TASK}/keys", "renewKey"),
        "Give a task a new key to seal reports to; for the operator.",
        "NewKey",
        problems=(403, 409),
        secure=True,
        status=201,
    ),
    _Operation(
        *("post", f"{_TASK}/tokens", "giveToken"),
        "Give a reader of this task alone a token; for the operator.",
        "NewToken",
        problems=(400, 403),
        secure=True,
        status=201,
        query=[_in("query", "name", _NAME, required=True)],
    ),
    _Operation(
        *("delete", f"{_TASK}/tokens", "takeToken"),
        "Take the token of a reader of this task away; for the operator.",
        "Reader",
        problems=(400, 403),
        secure=True,
        query=[_in("query", "name", _NAME, required=True)],
    ),
    _Operation(
        *("delete", _TASK, "deleteTask"),
        "Delete a task, and from the files all that was kept of it; for the operator.",
        "Changed",
        problems=(400, 403),
        secure=True,
        query=_CONFIRM,
    ),
    _Operation(
        *("post", f"{_TASK}/end", "endTask"),
        "End a task: periods that have ended close, no other begins; for the operator.",
        "Ended",
        problems=(400, 403),
        secure=True,
        query=_CONFIRM,
    ),
    _Operation(
        *("post", f"{_TASK}/archive", "archiveTask"),
        "Erase all of a task but what it has released; for the operator.",
        "Changed",
        problems=(400, 403, 409),
        secure=True,
        query=_CONFIRM,
    ),
    _Operation(
        *("get", f"{_TASK}/answers", "ask"),
        "Answer a question; for analysts unless the task is public.",
        "Answers",
        problems=(400, 406, 409, 429, 503),
        secure=True,
        query=[_exampled(name) for name in _FIELDS],
        forms=tuple(media.partition(";")[0] for media in FORMATS.values() if media != JSON),
    ),
    _Operation(
        *("get", f"{_TASK}/events", "listen"),
        "Server-sent events: what each period releases when it closes.",
        "text/event-stream",
        problems=(400, 503),
        secure=True,
        query=[_SINCE, _BARE],
    ),
    _Operation(
        *("get", "/tasks/{task_id}", "showTask", "The task's page.", "text/html"),
        problems=(400, 429, 503),
        secure=True,
        query=[_in("query", name, schema) for name, schema in _CHOICES.items()],
    ),
    _Operation(
        *("get", "/tasks/{task_id}/shown.{kind}", "takeAway"),
        "What the task's page shows at the same choices, as a file.",
        TAKEN["csv"],
        problems=(400, 429, 503),
        secure=True,
        query=[
            _in("path", "kind", {"enum": list(TAKEN)}, required=True),
            *(_in("query", name, schema) for name, schema in _CHOICES.items()),
        ],
        forms=tuple(media for kind, media in TAKEN.items() if kind != "csv"),
    ),
    _Operation(
        *("get", "/", "showTasks", "The page of all tasks that may be read.", "text/html"),
        problems=(400, 429, 503),
        query=[
            _in("query", "search", {"type": "string", "maxLength": LONGEST_SEARCH}),
            _in("query", "state", {"enum": list(STATES)}),
            _in("query", "sort", {"enum": list(ORDERS), "default": "state"}),
        ],
    ),
    _Operation(
        *("get", "/ops", "showOperations", "The operator's view; for the operator.", "text/html"),
        problems=(403, 429, 503),
        secure=True,
    ),
    _Operation("get", "/healthz", "health", "Whether the process lives.", "Status"),
    _Operation("get", "/readyz", "ready", "Whether reports can be taken.", "Status", (503,)),
    _Operation(
        *("get", "/metrics", "metrics", "What Prometheus reads; for analysts.", "text/plain"),
        secure=True,
    ),
)


def _schemas() -> dict[str, Any]:
    number = {"type": ["number", "null"]}
    asked = schema_of(Question, complete=False, probability={"minimum": 0, "maximum": 1})
    return {
        "Problem": table(
            type=TEXT, title=TEXT, status={"type": "integer"}, detail=TEXT, instance=TEXT
        ),
        "Status": table(status=TEXT),
        "Summary": schema_of(TaskSummary),
        "Tasks": table(tasks=array(_ref("Summary"))),
        "Published": table(spec={"type": "object"}, keys={"type": "array"}, endpoint=TEXT),
        "PublishRequest": schema_of(
            PublishRequest,
            complete=False,
            start={"maximum": LATEST},
            grace={"maximum": LONGEST_GRACE},
        )
        | {"additionalProperties": False},
        "Receipt": _receipt(),
        "Question": table(version={"const": 1}, question={"anyOf": [{"type": "null"}, asked]}),
        "NewKey": table(task_id=TEXT, key_id=COUNT),
        "NewToken": table(task_id=TEXT, name=TEXT, token=TEXT),
        "Reader": table(task_id=TEXT, name=TEXT),
        "Changed": table(task_id=TEXT),
        "Ended": table(task_id=TEXT, last_period=COUNT),
        "Answers": _answers(number),
    }


def _receipt() -> dict[str, Any]:
    """Return the form of receipts; the last period is only there if the task was ended."""
    refused = array(table(index=COUNT, reason={"enum": list(REASONS)}))
    receipt = schema_of(Receipt, refused=refused, last_period=COUNT)
    receipt["required"].remove("last_period")
    return receipt


def _answers(number: dict[str, Any]) -> dict[str, Any]:
    """Return the form of answers; what is said of some periods is only there if there are any."""
    answers = table(
        query={"enum": list(QUERIES)},
        question=TEXT,
        answers=array(table(value=number, low=number, high=number)),
        level={"type": "number"},
        band={"type": "boolean"},
        as_of=COUNT,
        method=TEXT,
        n=COUNT,
        guarantee=TEXT,
        quantity=schema_of(Quantity),
    )
    answers["properties"] |= {name: array(COUNT) for name in REMARKS}
    return answers
