"""Models behind any endpoint that is compatible with OpenAI's (PROTOCOL 9.1)."""

from providers.openai.provider import OpenAIProvider

__all__ = ["OpenAIProvider"]
