"""Erasing for good: a person, an agent, a session, a trace, or a text, with what was distilled solely from it."""
