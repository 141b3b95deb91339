"""An ASGI entry for hosts that want one. The product itself runs on gunicorn (wsgi.py)."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hindsight_site.settings")
application = get_asgi_application()
