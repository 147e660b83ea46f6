"""The HTTP interface as an OpenAPI 3.1 document, built from the constants that the code uses."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

from sfumato.core.estimate import LARGEST_LEVEL
from sfumato.service.collector import REASONS
from sfumato.service.problems import MEDIA_TYPE
from sfumato.service.query_parameters import QUERIES
from sfumato.wire.reports import BATCH_TYPE

__all__ = ["document"]

_TASK_ID: Final = {
    "name": "task_id",
    "in": "path",
    "required": True,
    "description": "The SHA-256 of the task's spec.",
    "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}

_SINCE: Final = {
    "name": "since",
    "in": "query",
    "description": "The last period that was heard of; those after it follow.",
    "schema": {"type": "integer", "minimum": 0, "maximum": 16_384, "default": 0},
}

_NUMBER: Final = {"type": ["number", "null"]}
_COUNT: Final = {"type": "integer", "minimum": 0}


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sfumato collector",
            "version": version("sfumato"),
            "description": "Receives reports that devices have blurred, and answers from them.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": _paths(),
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths() -> dict[str, Any]:
    task = "/v1/tasks/{task_id}"
    return {
        "/v1/tasks": {
            "get": _operation("listTasks", "List the tasks.", _json("Tasks")),
            "post": _operation(
                "publishTask",
                "Publish a task; for the operator.",
                _json("Summary"),
                status=201,
                body={"application/json": {"schema": _ref("PublishRequest")}},
                problems=(400, 401, 403, 408, 411, 413, 429),
                secure=True,
            ),
        },
        task: {
            "get": _operation(
                "readTask",
                "The task as devices join it.",
                _json("Published"),
                parameters=[_TASK_ID],
                problems=(404,),
            )
        },
        f"{task}/reports": {
            "post": _operation(
                "uploadReports",
                "Hand in a batch of reports; answered when all of them are safe.",
                _json("Receipt"),
                parameters=[_TASK_ID],
                body={BATCH_TYPE: {"schema": {"type": "string", "format": "binary"}}},
                problems=(400, 403, 404, 408, 411, 413, 415, 429),
            )
        },
        f"{task}/question": {
            "get": _operation(
                "readQuestion",
                "What an interactive task asks now of whoever is free; null if nothing.",
                _json("Question"),
                parameters=[_TASK_ID],
                problems=(404,),
            )
        },
        f"{task}/keys": {
            "post": _operation(
                "renewKey",
                "Give a task a new key to seal reports to; for the operator.",
                _json("NewKey"),
                status=201,
                parameters=[_TASK_ID],
                problems=(401, 403, 404, 409),
                secure=True,
            )
        },
        f"{task}/answers": {
            "get": _operation(
                "ask",
                "Answer a question; for analysts unless the task is public.",
                _json("Answers"),
                parameters=[_TASK_ID, *_question()],
                problems=(400, 401, 404, 409),
                secure=True,
            )
        },
        f"{task}/events": {
            "get": _operation(
                "listen",
                "Server-sent events: what each period releases when it closes.",
                {"text/event-stream": {"schema": {"type": "string"}}},
                parameters=[_TASK_ID, _SINCE],
                problems=(400, 401, 404, 503),
                secure=True,
            )
        },
        "/tasks/{task_id}": {
            "get": _operation(
                "showTask",
                "The task's page.",
                {"text/html": {"schema": {"type": "string"}}},
                parameters=[_TASK_ID],
                problems=(401, 404),
                secure=True,
            )
        },
        "/healthz": {"get": _operation("health", "Whether the process lives.", _json("Status"))},
        "/readyz": {
            "get": _operation(
                "ready", "Whether reports can be taken.", _json("Status"), problems=(503,)
            )
        },
        "/metrics": {
            "get": _operation(
                "metrics",
                "What Prometheus reads; for analysts.",
                {"text/plain": {"schema": {"type": "string"}}},
                problems=(401,),
                secure=True,
            )
        },
    }


def _operation(  # noqa: PLR0913 -- one for each part of an operation
    name: str,
    summary: str,
    content: dict[str, Any],
    *,
    status: int = 200,
    parameters: list[dict[str, Any]] | None = None,
    body: dict[str, Any] | None = None,
    problems: tuple[int, ...] = (),
    secure: bool = False,
) -> dict[str, Any]:
    made: dict[str, Any] = {"operationId": name, "summary": summary}
    if parameters:
        made["parameters"] = parameters
    if body:
        made["requestBody"] = {"required": True, "content": body}
    problem = {"content": {MEDIA_TYPE: {"schema": _ref("Problem")}}}
    made["responses"] = {str(status): {"description": "Done.", "content": content}} | {
        str(code): {"description": "Refused.", **problem} for code in problems
    }
    if secure:
        made["security"] = [{"token": []}, {}]
    return made


def _question() -> list[dict[str, Any]]:
    whole = {"type": "integer", "minimum": 1, "maximum": 16_384}
    schemas: dict[str, dict[str, Any]] = {
        "query": {"enum": list(QUERIES), "default": "mean"},
        **dict.fromkeys(("period", "first", "last", "before", "after", "k"), whole),
        "item": {"type": "string"},
        "average": {"type": "boolean"},
        "simultaneous": {"type": "boolean"},
        "decoder": {"enum": ["online", "smoothed", "filtered", "posterior"], "default": "online"},
        "level": {"type": "number", "exclusiveMinimum": 0, "maximum": LARGEST_LEVEL},
    }
    return [{"name": name, "in": "query", "schema": schema} for name, schema in schemas.items()]


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": _ref(name)}}


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _schemas() -> dict[str, Any]:
    text, truth = {"type": "string"}, {"type": "boolean"}
    refused = _object(index=_COUNT, reason={"enum": list(REASONS)})
    one = {
        "type": "object",
        "properties": {"value": _NUMBER, "low": _NUMBER, "high": _NUMBER},
        "required": ["value", "low", "high"],
    }
    return {
        "Problem": _object(type=text, title=text, status={"type": "integer"}, detail=text),
        "Status": _object(status=text),
        "Summary": _object(
            task_id=text,
            title=text,
            epsilon={"type": "number"},
            periods=_COUNT,
            period_seconds=_COUNT,
            start=_COUNT,
            closed=_COUNT,
            public=truth,
            guarantee=text,
            offers={"type": "array", "items": text},
        ),
        "Tasks": _object(tasks={"type": "array", "items": _ref("Summary")}),
        "Published": _object(spec={"type": "object"}, keys={"type": "array"}, endpoint=text),
        "PublishRequest": {
            "type": "object",
            "properties": {
                "task": {"type": "object", "description": "The fields of a task file."},
                "start": {"type": ["integer", "null"], "minimum": 0, "maximum": 1 << 40},
                "grace": {"type": ["integer", "null"], "minimum": 0, "maximum": 1 << 31},
                "sealed": {"type": "boolean", "default": True},
                "public": {"type": "boolean", "default": False},
                "endpoint": {
                    "type": ["string", "null"],
                    "description": "Where devices send, if not here: to a shuffler.",
                },
            },
            "required": ["task"],
            "additionalProperties": False,
        },
        "Receipt": _object(
            accepted=_COUNT,
            repeated=_COUNT,
            refused={"type": "array", "items": refused},
            key_id=_COUNT,
        ),
        "Question": _object(
            version={"const": 1},
            question={
                "anyOf": [
                    {"type": "null"},
                    _object(
                        period=_COUNT,
                        round=_COUNT,
                        mechanism={"type": "object"},
                        probability={"type": "number", "minimum": 0, "maximum": 1},
                    ),
                ]
            },
        ),
        "NewKey": _object(task_id=text, key_id=_COUNT),
        "Answers": _object(
            query={"enum": list(QUERIES)},
            question=text,
            answers={"type": "array", "items": one},
            level={"type": "number"},
            band=truth,
            as_of=_COUNT,
            method=text,
            n=_COUNT,
            guarantee=text,
            quantity=_object(
                kind={"enum": ["share", "mean", "move", "amount"]},
                noun=text,
                unit=text,
                scale={"type": "number"},
                from_zero=truth,
            ),
        ),
    }
