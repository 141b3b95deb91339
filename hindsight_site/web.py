"""The web process: gunicorn, set up the way this site wants it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections
from django.urls import get_resolver
from gunicorn.app.base import BaseApplication

from hindsight_site import sharing
from hindsight_site.web_worker import Worker


@dataclass(frozen=True, slots=True)
class Serving:
    """Where to listen, `host:port` or `fd://3`, with how many processes of how many threads each, and how
    many seconds requests get to end when the server is told to stop."""

    bind: str
    workers: int
    threads: int
    grace: int


class Site(BaseApplication):
    """gunicorn's way of being started from Python: options in, the application out."""

    def __init__(self, serving: Serving, begin: Callable[[], None]) -> None:
        self.serving = serving
        self.begin = begin
        super().__init__()

    def load_config(self) -> None:
        for name, value in _gunicorn_options(self.serving).items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Load, once, what the workers share: code, URL patterns and the embedder's weights."""
        from hindsight_site.wsgi import application

        _ = get_resolver().url_patterns  # imports every view, which the first request would wait for
        self.begin()
        connections.close_all()  # a connection must not be shared by forks
        sharing.share()
        return application


def serve(serving: Serving, begin: Callable[[], None]) -> None:
    """Serve until SIGTERM. `begin` is called when all is loaded and nothing is served yet.

    Does not return: gunicorn exits.
    """
    Site(serving, begin).run()


def _gunicorn_options(serving: Serving) -> dict[str, Any]:
    return {
        "bind": serving.bind,
        "worker_class": Worker,
        "workers": serving.workers,
        "threads": serving.threads,
        "preload_app": True,
        "graceful_timeout": serving.grace,
        "keepalive": 5,
        "control_socket_disable": True,
        # The workers' heartbeat is a file: in memory where the system has such a place.
        "worker_tmp_dir": "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir(),  # noqa: S108
        "proc_name": "hindsight-web",
        "child_exit": _forget,
        "logconfig_dict": _logging(),
    }


def _forget(server: Any, worker: Any) -> None:
    """A web process has ended."""
    if settings.COUNT_REQUESTS:
        from hindsight_site.metrics import requests

        requests.forget_process(worker.pid)


def _logging() -> dict[str, Any]:
    """The site's own logging, with gunicorn's messages in the same form and without a line per request."""
    site: dict[str, Any] = settings.LOGGING
    own = {
        "gunicorn.error": {"level": settings.LOG_LEVEL, "propagate": True},
        "gunicorn.access": {"level": "WARNING", "propagate": True},
    }
    return {**site, "loggers": {**site["loggers"], **own}}
