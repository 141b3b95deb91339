from django.apps import AppConfig


class ReflectionConfig(AppConfig):
    name = "reflection"
    verbose_name = "Reflection and review"

    def ready(self) -> None:
        from memories.signals import forgotten, to_judge_blind
        from reflection.review import blinding
        from reflection.review.forgetting import forget_words

        forgotten.connect(forget_words, dispatch_uid="review words")
        to_judge_blind.connect(blinding.to_judge_blind, dispatch_uid="review blind")
