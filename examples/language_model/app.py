"""The HTTP side: routes, server-sent events, disconnects."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from examples.language_model.chat import AnswerWriter, ChatRequest, parse_request
from examples.language_model.engine import Engine
from examples.language_model.errors import ApiError
from examples.language_model.turns import Answer, Turns

MAX_BODY_BYTES = 1024 * 1024


def create_app(turns: Turns) -> FastAPI:
    """Build the app around one engine; when the app ends, its turns end too."""
    engine = turns.engine

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await turns.close()

    app = FastAPI(title="A small language model", lifespan=lifespan, docs_url=None, redoc_url=None)

    @app.exception_handler(ApiError)
    async def answer_api_error(_request: Request, error: ApiError) -> Response:
        return JSONResponse(error.body(), status_code=error.status)

    @app.exception_handler(HTTPException)
    async def answer_http_error(request: Request, error: HTTPException) -> Response:
        return await answer_api_error(request, ApiError(error.status_code, str(error.detail)))

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def list_models() -> dict[str, object]:
        return {"object": "list", "data": [_model_card(engine.name)]}

    @app.get("/v1/models/{name}")
    async def get_model(name: str) -> dict[str, object]:
        _require_model(engine, name)
        return _model_card(name)

    @app.post("/v1/chat/completions")
    async def create_chat_completion(request: Request) -> Response:
        chat = parse_request(await _read_body(request))
        _require_model(engine, chat.model)
        prompt = engine.tokens_of([message.turn() for message in chat.messages])
        room = engine.context_tokens - len(prompt)
        if room < 1:
            raise ApiError(
                400,
                f"the prompt has {len(prompt)} tokens, the context holds {engine.context_tokens}; shorten it",
                code="context_length_exceeded",
                param="messages",
            )
        writer = AnswerWriter(engine.name, prompt_tokens=len(prompt), include_usage=chat.include_usage)
        answer = turns.start(prompt, chat.sampling(room))
        if chat.stream:
            frames = _frames(request, answer, writer, chat)
            return StreamingResponse(frames, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
        return JSONResponse(await _whole(request, answer, writer))

    return app


async def _frames(request: Request, answer: Answer, writer: AnswerWriter, chat: ChatRequest) -> AsyncIterator[bytes]:
    tokens, finished = 0, False
    async with _stopped_on_disconnect(request, answer):
        yield _frame(writer.chunk({"role": "assistant", "content": ""}))
        try:
            async for step in answer:
                tokens += step.finish_reason is None
                if step.text:
                    yield _frame(writer.chunk({"content": step.text}))
                if step.finish_reason is not None:
                    finished = True
                    yield _frame(writer.chunk({}, step.finish_reason))
        except RuntimeError as failure:
            # The status line is long gone: an error object inside the stream, and no end mark after it.
            yield _frame(ApiError(500, str(failure), code="engine_failed").body())
        if finished and chat.include_usage:
            yield _frame(writer.usage_chunk(tokens))
        if finished:
            yield b"data: [DONE]\n\n"


async def _whole(request: Request, answer: Answer, writer: AnswerWriter) -> dict[str, Any]:
    texts: list[str] = []
    tokens, finish_reason = 0, None
    async with _stopped_on_disconnect(request, answer):
        try:
            async for step in answer:
                tokens += step.finish_reason is None
                texts.append(step.text)
                finish_reason = step.finish_reason
        except RuntimeError as failure:
            raise ApiError(500, str(failure), code="engine_failed") from failure
    if finish_reason is None:
        raise ApiError(503, "the answer was stopped", code="stopped")
    return writer.whole("".join(texts), finish_reason, tokens)


@asynccontextmanager
async def _stopped_on_disconnect(request: Request, answer: Answer) -> AsyncIterator[None]:
    """Stop the answer when its reader goes away, and in any case at the end."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            continue
        answer.stop()

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        answer.stop()
        watcher.cancel()


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise ApiError(413, f"the body is over {MAX_BODY_BYTES} bytes", code="request_too_large")
    return bytes(body)


def _require_model(engine: Engine, name: str) -> None:
    if name != engine.name:
        message = f"there is no model {name[:100]!r}; this server has {engine.name!r}"
        raise ApiError(404, message, code="model_not_found", param="model")


def _model_card(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "HuggingFaceTB"}


def _frame(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
