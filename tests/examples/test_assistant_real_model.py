"""The example assistant with the real small model, from the registry to the transcript."""

import pytest

from runhost.client import ModelRequest
from tests.examples.assistant import Assistant
from tests.examples.servers import ChatServer

PASSAGE = "A durable workflow goes on after the machine that it ran on was lost."


@pytest.mark.timeout(180)  # the model reads some hundred tokens on a busy processor
async def test_real_model_streams_an_answer_from_what_a_base_knows(
    assistant: Assistant, language_model: ChatServer
) -> None:
    """LA-03, LA-05: every token that the model has counted is in the run's usage."""
    kb_id = await assistant.put_base(PASSAGE)
    await assistant.put(config={"knowledge": [kb_id]})
    request = ModelRequest(
        base_url=language_model.base_url, model_name=language_model.model, default_args={"max_tokens": 60}
    )
    await assistant.client.put_model(f"model-{assistant.name}", request)

    run = await assistant.say("What is a durable workflow?")

    assert (run.status, run.status_reason) == ("completed", None)
    deltas = await assistant.deltas(run.run_id)
    assert len(deltas) > 5
    assert await assistant.answers() == ["".join(deltas)]
    assert run.usage is not None
    assert run.usage.completion_tokens is not None
    assert run.usage.completion_tokens >= len(deltas)
    sources = await assistant.ledger(run.run_id, "artifact.created")
    assert [row.data["name"] for row in sources] == ["sources.json"]


async def test_real_model_that_takes_no_images_fails_the_run_clearly(
    assistant: Assistant, language_model: ChatServer
) -> None:
    """LA-06."""
    await assistant.put()
    request = ModelRequest(base_url=language_model.base_url, model_name=language_model.model)
    await assistant.client.put_model(f"model-{assistant.name}", request)

    run = await assistant.say("What is this?", contents=[{"type": "image_base64", "image_base64": "iVBORw0KGgo="}])

    assert (run.status, run.status_code) == ("failed", "assistant.runtime_error")
