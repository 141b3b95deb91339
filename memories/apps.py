from django.apps import AppConfig


class MemoriesConfig(AppConfig):
    name = "memories"
    verbose_name = "Memories"

    def ready(self) -> None:
        """Register the checks of the settings."""
        from memories import checks  # noqa: F401 - registers itself
