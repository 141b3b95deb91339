VERSION = "0.1.0"  # as pyproject.toml says it
