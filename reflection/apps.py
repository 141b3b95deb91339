from django.apps import AppConfig


class ReflectionConfig(AppConfig):
    name = "reflection"
    verbose_name = "Reflection and review"

    def ready(self) -> None:
        from memories.signals import forgotten
        from reflection.review.forgetting import forget_words

        forgotten.connect(forget_words, dispatch_uid="review words")
