"""`manage.py rotate_keys`: let the next key sign access tokens, and the present one retire."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from hindsight_site.accounts import signing_keys


class Command(BaseCommand):
    help = "Rotate the keys that sign access tokens. What was signed before stays valid until it expires."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--leaked",
            action="store_true",
            help="accept no present key any more: every access token ends now and is exchanged anew",
        )

    def handle(self, *args: Any, leaked: bool, **options: Any) -> None:
        done = signing_keys.rotate(leaked=leaked)
        waits = f" Not rotated: the next key may sign from {done.wait_until:%H:%M} UTC." if done.wait_until else ""
        self.stdout.write(
            f"Signing keys: {done.active[:8]}… signs, {done.next[:8]}… is next, {done.retiring} retiring, "
            f"{done.retired} retired.{waits}"
        )
