"""Runner for OpenAI-compatible chat endpoints."""
