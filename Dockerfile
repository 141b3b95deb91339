# The production image: code and requirements, no database, no secret, no root.

FROM python:3.13-slim AS build
RUN python -m venv /opt/venv
COPY requirements.txt /tmp/
RUN /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check -qq --only-binary :all: \
    --require-hashes --requirement /tmp/requirements.txt
WORKDIR /app
COPY manage.py ./
COPY hindsight_site hindsight_site
COPY memories memories
COPY reflection reflection
COPY templates templates
# The settings serve hashed and compressed files when the folder is there. The key and the address are
# for this one command, which uses neither.
RUN mkdir static_collected \
    && SECRET_KEY=unused DATABASE_URL=postgresql://unused \
    /opt/venv/bin/python manage.py collectstatic --noinput --verbosity 0 \
    && /opt/venv/bin/python -m compileall -q .

FROM python:3.13-slim
RUN groupadd --system --gid 10001 hindsight \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin hindsight \
    && install -d -o hindsight -g hindsight -m 700 /data
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HINDSIGHT_DATA_DIR=/data
# Holds the secret key that is made where SECRET_KEY is not set. All else of the file system may be read-only.
VOLUME /data
WORKDIR /app
# By number, so that an engine can tell that it is not root.
USER 10001:10001
EXPOSE 8000
# An answer at all is enough: with ALLOWED_HOSTS set, one to "localhost" is 400.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", "\
from http.client import HTTPConnection; \
site = HTTPConnection('127.0.0.1', 8000, timeout=4); \
site.request('GET', '/healthz'); \
raise SystemExit(site.getresponse().status >= 500)"]
STOPSIGNAL SIGTERM
CMD ["python", "manage.py", "web", "--bind", "0.0.0.0:8000"]
