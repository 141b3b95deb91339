"""The rules of life: pure decisions in `rules` and `capacity`, applied hourly by `sweep`."""
