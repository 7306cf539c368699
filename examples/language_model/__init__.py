"""A small language model behind the OpenAI chat interface; see README.md."""
