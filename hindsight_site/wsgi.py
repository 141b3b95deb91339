"""The web process. The embedder is loaded here, before gunicorn forks, so that workers share its pages."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hindsight_site.settings")
application = get_wsgi_application()

import hindsight_site.mcp.endpoint  # noqa: E402, F401 - loaded before the fork, too
import hindsight_site.mcp.hindsight  # noqa: E402, F401
from memories.embeddings import warm_up  # noqa: E402 - needs the settings above

warm_up()
