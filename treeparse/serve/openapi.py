"""What the server can be asked, as OpenAPI 3.1."""

from typing import Any

from treeparse.serve.process_request import PARAMETERS
from treeparse.shipped import installed_version

FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
REFUSED = {"description": "a sentence that says what is wrong", "content": {"text/plain": {}}}
ANSWERS = {
    "/models": "the models, with what they can do, and the default one",
    "/health": "ok, while the parser works",
    "/openapi.json": "this description",
}


def description() -> dict[str, Any]:
    """Return the description as plain data."""
    schemas = {name: _schema(name) for name in PARAMETERS}
    form = {"schema": {"type": "object", "properties": schemas, "required": ["data"]}}
    query = [
        {"name": name, "in": "query", "required": name == "data", "schema": schema} for name, schema in schemas.items()
    ]
    parsed = {"200": _json("the model's name, the software and the result"), "default": REFUSED}
    process = {
        "get": {"summary": "Parse sentences.", "parameters": query, "responses": parsed},
        "post": {
            "summary": "Parse sentences.",
            "requestBody": {"required": True, "content": dict.fromkeys(FORMS, form)},
            "responses": parsed,
        },
    }
    others = {path: {"get": {"responses": {"200": _json(answer)}}} for path, answer in ANSWERS.items()}
    metrics = {"description": "counts for Prometheus", "content": {"text/plain": {}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "treeparse", "version": installed_version()},
        "paths": {"/process": process, **others, "/metrics": {"get": {"responses": {"200": metrics}}}},
    }


def _schema(name: str) -> dict[str, Any]:
    parameter = PARAMETERS[name]
    values = {"enum": [*parameter.values]} if parameter.values else {}
    return {"type": "string", "description": parameter.meaning, "examples": [parameter.example], **values}


def _json(answer: str) -> dict[str, Any]:
    return {"description": answer, "content": {"application/json": {}}}
