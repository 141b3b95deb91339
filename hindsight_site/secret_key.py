"""The site's secret key when the operator gives none: made once, kept in the data folder."""

from __future__ import annotations

import os
from pathlib import Path

from django.core.management.utils import get_random_secret_key


def load_or_create(data_dir: Path) -> str:
    """Return the key in `data_dir/secret_key`, creating it (mode 0600) at the first call.

    Two processes that start together get the same key: the file is linked into place, and the one
    that loses the race reads the winner's.
    """
    path = data_dir / "secret_key"
    if not path.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        draft = data_dir / f".secret_key.{os.getpid()}"
        draft.touch(mode=0o600)
        draft.write_text(get_random_secret_key(), encoding="ascii")
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="ascii")
