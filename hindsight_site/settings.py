"""All settings of the site. This is the only module that reads the environment.

Every setting that an operator may change is read through one of the tiny helpers below, so
`grep env_ hindsight_site/settings.py` lists them all; the README has those that matter most.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from hindsight_site import addresses, databases
from hindsight_site.metrics.folder import make_folder
from hindsight_site.secret_key import load_or_create
from hindsight_site.telemetry import packages


def env_str(name: str, default: str = "") -> str:
    """A setting, or the content of the file that NAME_FILE names: how containers hand over secrets."""
    if path := os.environ.get(f"{name}_FILE", "").strip():
        try:
            return Path(path).read_text(encoding="utf-8").strip() or default
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise ImproperlyConfigured(f"{name}_FILE names a file that cannot be read ({reason}): {path}") from error
    return os.environ.get(name, "").strip() or default


def env_int(name: str, default: int) -> int:
    try:
        return int(env_str(name, str(default)))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is not a whole number: set it to one, as {default}.") from error


def env_float(name: str, default: float) -> float:
    try:
        return float(env_str(name, str(default)))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is not a number: set it to one, as {default:g}.") from error


def env_bool(name: str, default: bool) -> bool:
    return env_str(name, str(default)).lower() in {"1", "true", "yes", "on"}


def env_list(name: str, default: str) -> list[str]:
    return [part.strip() for part in env_str(name, default).split(",") if part.strip()]


BASE_DIR = Path(__file__).resolve().parent.parent

# --- Where things are ------------------------------------------------------------------------------
# The embedded database, the generated secret key and the process files live here.
DATA_DIR = Path(env_str("HINDSIGHT_DATA_DIR", str(BASE_DIR / "var"))).expanduser()
# The address people and agents use; shown on the connect page and in e-mails. https turns on the
# secure cookies and HSTS.
SITE_URL = env_str("SITE_URL", "http://127.0.0.1:8000").rstrip("/")
addresses.check("SITE_URL", SITE_URL, "https://hindsight.example.com")
SITE_IS_HTTPS = SITE_URL.startswith("https://")

# --- Security --------------------------------------------------------------------------------------
DEBUG = env_bool("DEBUG", False)
# Without SECRET_KEY one is made at the first start and kept in the data folder, readable by its owner.
SECRET_KEY = env_str("SECRET_KEY") or load_or_create(DATA_DIR)
# Former secret keys, so that sessions survive a change of the key.
SECRET_KEY_FALLBACKS = env_list("SECRET_KEY_FALLBACKS", "")
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS", SITE_URL)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SITE_IS_HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 60 * 60 * 24 * 14
SECURE_HSTS_SECONDS = 60 * 60 * 24 * 365 if SITE_IS_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SITE_IS_HTTPS
SECURE_HSTS_PRELOAD = SITE_IS_HTTPS
# Whether the proxy in front says in X-Forwarded-Proto how a request came. Only then can http be told from
# https here and be redirected; otherwise that is the proxy's to do.
TRUST_PROXY_SSL_HEADER = env_bool("TRUST_PROXY_SSL_HEADER", False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUST_PROXY_SSL_HEADER else None
SECURE_SSL_REDIRECT = SITE_IS_HTTPS and TRUST_PROXY_SSL_HEADER
# Asked from inside, past the proxy, by whoever watches.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
SILENCED_SYSTEM_CHECKS = [] if SECURE_SSL_REDIRECT else ["security.W008"]  # "redirect to https"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    },
}

# --- Apps ------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "hindsight_site.apps.SiteConfig",
    "hindsight_site.accounts",
    "memories",
    "reflection",
    "hindsight_site.apps.StaffAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
    "pgtrigger",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
]
MIDDLEWARE = [
    "hindsight_site.middleware.request_id",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "hindsight_site.errors.refuse_unmeasured",
    "hindsight_site.errors.refuse_nul",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "hindsight_site.errors.RefusalMiddleware",
]
ROOT_URLCONF = "hindsight_site.urls"
WSGI_APPLICATION = "hindsight_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "hindsight_site.accounts.pages.shell",
            ],
        },
    },
]

# --- Database --------------------------------------------------------------------------------------
# Any PostgreSQL 16 or newer with pgvector. Unset: the embedded server in DATA_DIR. Set but unreachable
# is an error, never a silent fall back.
# The role in it should be neither a superuser nor have BYPASSRLS: such a one is not bound by the fence
# between teams. DATABASE_OWNER_URL, where set, is used for migrations instead.
for _name in ("DATABASE_URL", "DATABASE_DIRECT_URL", "DATABASE_OWNER_URL", "DATABASE_REPLICA_URL"):
    addresses.check_database(_name, env_str(_name))
DATABASE_ROLE = databases.role_of(["test"] if "pytest" in sys.modules else sys.argv[1:])
APP_DATABASE_URL = env_str("DATABASE_URL")
# DATABASE_POOLER=transaction: DATABASE_URL is a pooler's (PgBouncer) that lends a session for one transaction. Then
# DATABASE_DIRECT_URL is the database itself, for the same role: for the owner's commands (where DATABASE_OWNER_URL
# does not name another) and for the one connection with which each process counts requests.
DATABASE_POOLER = env_str("DATABASE_POOLER")
DATABASE_DIRECT_URL = env_str("DATABASE_DIRECT_URL", "" if DATABASE_POOLER else APP_DATABASE_URL)
databases.check_pooler(DATABASE_POOLER, DATABASE_DIRECT_URL)
IS_POOLED = DATABASE_POOLER == "transaction" and DATABASE_ROLE != "owner"
DATABASE_URL = env_str("DATABASE_OWNER_URL", DATABASE_DIRECT_URL) if DATABASE_ROLE == "owner" else APP_DATABASE_URL
# A page or a call whose statement takes longer is answered with 503. Workers and commands take their time.
DATABASE_STATEMENT_TIMEOUT_MS = env_int("DATABASE_STATEMENT_TIMEOUT_MS", 30_000) if sys.argv[1:2] == ["web"] else 0
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        **databases.parameters(DATABASE_URL, DATA_DIR, DATABASE_ROLE, DATABASE_STATEMENT_TIMEOUT_MS, IS_POOLED),
        # Every request is one transaction, in which the team is set (accounts.tenancy.enter_team).
        "ATOMIC_REQUESTS": True,
        "CONN_MAX_AGE": 60,
        # Without the health check half the requests fail after a database restart.
        "CONN_HEALTH_CHECKS": True,
    }
}
# A streaming replica, as the role that serves: recalls look there once it has what their team wrote last. Set it for
# every process, workers too: each leaves word of what it writes. Unset: the primary does it all.
if DATABASE_REPLICA_URL := env_str("DATABASE_REPLICA_URL"):
    DATABASES["replica"] = {
        "ENGINE": "django.db.backends.postgresql",
        **databases.replica_parameters(DATABASE_REPLICA_URL, DATA_DIR, IS_POOLED),
        "CONN_MAX_AGE": 60,
        "TEST": {"MIRROR": "default"},
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- People ----------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
# Whether anybody may sign up and found a team; people with an invitation always may.
SIGN_UP_OPEN = env_bool("SIGN_UP_OPEN", True)
ACCOUNT_ADAPTER = "hindsight_site.accounts.adapters.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "hindsight_site.accounts.forms.LoginForm",
    "signup": "hindsight_site.accounts.forms.SignUpForm",
    "add_email": "hindsight_site.accounts.forms.ChangeEmailForm",
    "reset_password": "hindsight_site.accounts.forms.ResetPasswordForm",
}
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
# optional: a mail is sent, and one can work before it is answered. mandatory: nobody logs in with an
# address that was not confirmed; wants a mail server. none: no mail.
ACCOUNT_EMAIL_VERIFICATION = env_str("ACCOUNT_EMAIL_VERIFICATION", "optional")
ACCOUNT_CHANGE_EMAIL = True  # one address a person; the former one stays until the new one is confirmed
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if SITE_IS_HTTPS else "http"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = False
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = False
ACCOUNT_REAUTHENTICATION_REQUIRED = True  # password, e-mail and second factor want a fresh log-in
ACCOUNT_REAUTHENTICATION_METHODS = {"password", "mfa"}
ACCOUNT_EMAIL_NOTIFICATIONS = True  # tell people when their password, address or second factor changes
# Failed log-ins of one address count together, wherever they come from. See CACHES.
ACCOUNT_RATE_LIMITS = {"login_failed": "20/m/ip,5/5m/key"}
# How many proxies of ours stand in front: the client's address is taken that many from the right of
# X-Forwarded-For. 0: the header is not believed.
ALLAUTH_TRUSTED_PROXY_COUNT = env_int("TRUSTED_PROXY_COUNT", 0)
MFA_ADAPTER = "hindsight_site.accounts.adapters.TwoFactorAdapter"
MFA_FORMS = {
    "add_webauthn": "hindsight_site.accounts.passkeys.AddForm",
    "authenticate_webauthn": "hindsight_site.accounts.passkeys.AuthenticateForm",
    "login_webauthn": "hindsight_site.accounts.passkeys.LoginForm",
    "reauthenticate_webauthn": "hindsight_site.accounts.passkeys.ReauthenticateForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_TOLERANCE = 1  # a code of the step before or after counts: clocks differ
# Log-in throttling counts in the database, so that all web processes count together.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "throttle"},
    "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}

# --- E-mail: to the log unless a server is named ----------------------------------------------------
EMAIL_BACKEND = env_str("EMAIL_BACKEND", "django.core.mail.backends.console.EmailBackend")
EMAIL_HOST = env_str("EMAIL_HOST", "localhost")
EMAIL_PORT = env_int("EMAIL_PORT", 25)
EMAIL_HOST_USER = env_str("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env_str("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env_bool("EMAIL_USE_TLS", False)
EMAIL_TIMEOUT = 10  # seconds; a request waits for the mail server
DEFAULT_FROM_EMAIL = env_str("DEFAULT_FROM_EMAIL", "Hindsight <hindsight@localhost>")

# --- Language and time -----------------------------------------------------------------------------
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

# --- Static files ----------------------------------------------------------------------------------
STATIC_URL = "/static/"
# Until `collectstatic` has run (the image does) they are served straight from the source tree.
COLLECTED = BASE_DIR / "static_collected"
IS_COLLECTED = COLLECTED.exists()
STATIC_ROOT = COLLECTED if IS_COLLECTED or "collectstatic" in sys.argv else BASE_DIR / "hindsight_site" / "static"
WHITENOISE_USE_FINDERS = not IS_COLLECTED
WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if IS_COLLECTED
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# --- REST ------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["hindsight_site.accounts.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["hindsight_site.accounts.authentication.HasTokenScope"],
    "DEFAULT_THROTTLE_CLASSES": ["hindsight_site.accounts.throttle.TokenThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["hindsight_site.api.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "hindsight_site.api.schema.ContractSchema",
    "EXCEPTION_HANDLER": "hindsight_site.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,  # `?format=` is a parameter of ours, not the choice of a renderer
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Hindsight",
    "DESCRIPTION": "Governed memory for AI agents: traces in, reviewed lessons out.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_NAME_OVERRIDES": {
        "MemoryStatus": "memories.enums.Status",
        "TraceStatus": "reflection.enums.TraceStatus",
        "ReflectionStatus": "reflection.enums.ReflectionStatus",
        "WebhookEvent": "hindsight_site.accounts.enums.WebhookEvent",
        "OfferedEvent": "hindsight_site.accounts.api.webhooks.EVENTS",
        "ConflictDecision": "memories.enums.Resolution",
        "QuarantineDecision": "memories.api.quarantine.DECISIONS",
        "JobStatus": "hindsight_site.accounts.enums.JobStatus",
        "JobKind": "hindsight_site.accounts.enums.JobKind",
        "MemoryKind": "memories.enums.Kind",
        "MemoryTier": "memories.enums.Tier",
        "MemoryTrust": "memories.enums.Trust",
        "ReviewMode": "memories.enums.ReviewMode",
        "TokenScope": "hindsight_site.accounts.enums.TokenScope",
        "StepKind": "reflection.enums.StepKind",
        "ScopeKind": "memories.enums.ScopeKind",
        "RecallStatus": "memories.enums.RecallStatus",
        "DemoteReason": "memories.enums.DemoteReason",
        "ConflictReason": "memories.enums.ConflictReason",
        "VerdictDecision": "reflection.enums.Decision",
    },
}

# --- Limits (characters and bytes; over a limit is refused with the limit in the answer) ----------
MAX_CONTENT_CHARS = env_int("MAX_CONTENT_CHARS", 8_000)
SNIPPET_CHARS = 500  # longer content is shown to agents as its summary
MAX_STEP_BYTES = env_int("MAX_STEP_BYTES", 64 * 1024)
MAX_TRACE_BYTES = env_int("MAX_TRACE_BYTES", 2 * 1024 * 1024)
MAX_TRACE_STEPS = env_int("MAX_TRACE_STEPS", 5_000)
MAX_QUERY_CHARS = env_int("MAX_QUERY_CHARS", 2_000)
MAX_METADATA_BYTES = env_int("MAX_METADATA_BYTES", 16 * 1024)
MAX_IMPORT_BYTES = env_int("MAX_IMPORT_BYTES", 256 * 1024 * 1024)  # a file to import over the API or a page
# What one MCP tool call, and one MCP resource, answers with at most (bytes); more is shortened, and said so.
MCP_MAX_RESULT_BYTES = env_int("MCP_MAX_RESULT_BYTES", 64 * 1024)
MCP_MAX_RESOURCE_BYTES = env_int("MCP_MAX_RESOURCE_BYTES", 1024 * 1024)
# Django's own limit stays above ours so that the answer is always our problem+json.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * MAX_TRACE_BYTES

# --- How fast and how much (0 switches a limit off; over one is answered with 429) ------------------
# Requests of one token and of a whole team: a minute in the long run, and at once.
RATE_LIMIT_TOKEN_PER_MINUTE = env_int("RATE_LIMIT_TOKEN_PER_MINUTE", 1_200)
RATE_LIMIT_TOKEN_BURST = env_int("RATE_LIMIT_TOKEN_BURST", 200)
RATE_LIMIT_TEAM_PER_MINUTE = env_int("RATE_LIMIT_TEAM_PER_MINUTE", 6_000)
RATE_LIMIT_TEAM_BURST = env_int("RATE_LIMIT_TEAM_BURST", 1_000)
# Tokens that are refused at an exchange, by the client's address; see TRUSTED_PROXY_COUNT for whose that is.
RATE_LIMIT_FAILED_PER_MINUTE = env_int("RATE_LIMIT_FAILED_PER_MINUTE", 30)
RATE_LIMIT_FAILED_BURST = env_int("RATE_LIMIT_FAILED_BURST", 60)
# Schemes of apps that MCP clients may be answered at beside https and loopback, and those with a dot in them
# (com.example.app).
OAUTH_REDIRECT_SCHEMES = env_list("OAUTH_REDIRECT_SCHEMES", "cursor,vscode,vscode-insiders,windsurf,zed")
# What a team may keep, and use up by the day and the month (UTC).
QUOTA_MEMORIES = env_int("QUOTA_MEMORIES", 100_000)
QUOTA_TRACES_A_DAY = env_int("QUOTA_TRACES_A_DAY", 10_000)
# Used up: traces are distilled by rules until the month ends.
QUOTA_MODEL_TOKENS_A_MONTH = env_int("QUOTA_MODEL_TOKENS_A_MONTH", 20_000_000)

# --- Embeddings ------------------------------------------------------------------------------------
EMBEDDING_BACKEND = env_str("EMBEDDING_BACKEND", "local")  # local | openai (any compatible endpoint)
EMBEDDING_BASE_URL = env_str("EMBEDDING_BASE_URL")
addresses.check("EMBEDDING_BASE_URL", EMBEDDING_BASE_URL, "https://host/v1")
EMBEDDING_API_KEY = env_str("EMBEDDING_API_KEY")
EMBEDDING_MODEL = env_str("EMBEDDING_MODEL", "text-embedding-3-small")
EMBEDDING_DIMENSIONS = env_int("EMBEDDING_DIMENSIONS", 1536)
EMBEDDING_TIMEOUT_SECONDS = env_float("EMBEDDING_TIMEOUT_SECONDS", 10.0)

# --- Vector index ----------------------------------------------------------------------------------
# Where the nearest vectors of a recall are looked up: pgvector | milvus | qdrant | chroma. PostgreSQL keeps every
# vector in any case; after a change run `python manage.py reindex`. docs/scaling.md says when it pays.
VECTOR_INDEX = env_str("VECTOR_INDEX", "pgvector")
VECTOR_INDEX_URL = env_str("VECTOR_INDEX_URL")  # http://host:port, or https:// for TLS
VECTOR_INDEX_API_KEY = env_str("VECTOR_INDEX_API_KEY")  # Milvus: a token, or user:password
VECTOR_INDEX_COLLECTION = env_str("VECTOR_INDEX_COLLECTION", "hindsight")  # what our collections' names begin with
VECTOR_INDEX_CA_FILE = env_str("VECTOR_INDEX_CA_FILE")  # authorities to trust instead of the system's
# How long a recall waits for it at most; then it goes by keywords alone, flagged `degraded`.
VECTOR_INDEX_TIMEOUT_MS = env_int("VECTOR_INDEX_TIMEOUT_MS", 300)
VECTOR_INDEX_WRITE_TIMEOUT_SECONDS = env_float("VECTOR_INDEX_WRITE_TIMEOUT_SECONDS", 10.0)

# --- Recall ----------------------------------------------------------------------------------------
# Milliseconds after which an answer is given with what is there, flagged `degraded`; 0: as long as it takes.
RECALL_DEADLINE_MS = env_int("RECALL_DEADLINE_MS", 800)
# The same for a recall with `rerank: true`, which waits for a model.
RECALL_RERANK_DEADLINE_MS = env_int("RECALL_RERANK_DEADLINE_MS", 5_000)
# Whether such a recall also has the model word the question differently, and searches for both wordings.
RECALL_REWRITE = env_bool("RECALL_REWRITE", False)

# --- The model that reflects (any OpenAI-compatible endpoint; unset: the rules distiller) ----------
LLM_BASE_URL = env_str("LLM_BASE_URL")
addresses.check("LLM_BASE_URL", LLM_BASE_URL, "https://host/v1")
LLM_API_KEY = env_str("LLM_API_KEY")
LLM_MODEL = env_str("LLM_MODEL", "gpt-5-mini")
LLM_MODEL_STRONG = env_str("LLM_MODEL_STRONG", LLM_MODEL)  # for failed and long traces
LLM_TIMEOUT_SECONDS = env_float("LLM_TIMEOUT_SECONDS", 60.0)
# Price in US dollars per million tokens, to show what a reflection cost. Unset: the cost is unknown.
LLM_PRICE_IN = env_float("LLM_PRICE_IN", 0.0)
LLM_PRICE_OUT = env_float("LLM_PRICE_OUT", 0.0)
LLM_RUN_TOKENS = env_int("LLM_RUN_TOKENS", 300_000)  # of one reflection at most, in and out; 0: no limit

# --- Queue -----------------------------------------------------------------------------------------
# Truth lives in our rows (state, attempts, lease, fence); django-q2 only wakes a worker.
REFLECTION_LEASE_SECONDS = env_int("REFLECTION_LEASE_SECONDS", 30)
REFLECTION_MAX_ATTEMPTS = env_int("REFLECTION_MAX_ATTEMPTS", 3)
# Erasures, exports, imports and checks work in turns of under a minute, so the lease may be short too.
JOB_LEASE_SECONDS = env_int("JOB_LEASE_SECONDS", 30)
JOB_MAX_ATTEMPTS = env_int("JOB_MAX_ATTEMPTS", 3)  # deaths in a row without getting on
JOB_FILE_HOURS = env_int("JOB_FILE_HOURS", 24)  # how long an export can be downloaded
# Webhooks and other addresses that users name: only public ones are called, unless the operator allows all.
OUTBOUND_ALLOW_PRIVATE = env_bool("OUTBOUND_ALLOW_PRIVATE", False)
WEBHOOK_TIMEOUT_SECONDS = env_float("WEBHOOK_TIMEOUT_SECONDS", 10.0)
WEBHOOK_KEEP_DAYS = env_int("WEBHOOK_KEEP_DAYS", 30)  # of the delivery log
Q_CLUSTER = {
    "name": "hindsight",
    "orm": "default",
    "broker_class": "hindsight_site.broker.InOrder",
    "cache": "process",  # its statistics; ours are in our rows
    "workers": env_int("WORKERS", 2),
    "queue_limit": 2,  # time in the in-memory queue counts against `retry`
    "bulk": 1,
    "poll": 0.2,
    "timeout": 120,
    "retry": 300,
    "ack_failures": True,
    "max_attempts": 1,  # our own sweep re-queues; the runner must not
    "save_limit": -1,  # a positive limit locks all success rows
    "recycle": 500,
    "max_rss": 400_000,
    "catch_up": False,
    "time_zone": "UTC",
    "label": "Queue",
    # A second cluster for long work, started with Q_CLUSTER_NAME=long.
    "ALT_CLUSTERS": {"long": {"workers": 1, "timeout": 3600, "retry": 7200}},
}

# --- Metrics: GET /metrics, for Prometheus -----------------------------------------------------------
# Whoever sends it as a bearer token is answered. Unset: only this machine is, and only where SITE_URL is this
# machine's own; a published site answers nobody.
METRICS_TOKEN = env_str("METRICS_TOKEN")
# Requests are counted where prometheus-client is installed.
COUNT_REQUESTS = find_spec("prometheus_client") is not None
if COUNT_REQUESTS:
    MIDDLEWARE.insert(1, "hindsight_site.metrics.requests.count_requests")
# Where the processes of one `manage.py web` count together; prometheus-client reads the variable at its import.
METRICS_DIR = ""
if COUNT_REQUESTS and sys.argv[1:2] == ["web"]:
    METRICS_DIR = os.environ["PROMETHEUS_MULTIPROC_DIR"] = make_folder()

# --- Traces and error reports: nothing is sent until one of these is set ------------------------------
# An OpenTelemetry collector, as http://collector:4318. Its packages read the other OTEL_ variables themselves.
OTEL_EXPORTER_OTLP_ENDPOINT = env_str("OTEL_EXPORTER_OTLP_ENDPOINT")
addresses.check("OTEL_EXPORTER_OTLP_ENDPOINT", OTEL_EXPORTER_OTLP_ENDPOINT, "http://collector:4318")
OTEL_SERVICE_NAME = env_str("OTEL_SERVICE_NAME", "hindsight")
if OTEL_EXPORTER_OTLP_ENDPOINT:
    packages.need(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "opentelemetry.exporter.otlp.proto.http",
        "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
    )
    MIDDLEWARE.insert(1, "hindsight_site.telemetry.tracing.trace_requests")
# Where what is logged as an error goes to, without a word of any memory, trace or request in it.
SENTRY_DSN = env_str("SENTRY_DSN")
addresses.check_dsn("SENTRY_DSN", SENTRY_DSN)
SENTRY_ENVIRONMENT = env_str("SENTRY_ENVIRONMENT")
if SENTRY_DSN:
    packages.need("SENTRY_DSN", "sentry_sdk", "sentry-sdk")

# --- Logs: JSON lines to stderr, never with memory text or secrets ---------------------------------
LOG_LEVEL = env_str("LOG_LEVEL", "INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request": {"()": "hindsight_site.middleware.RequestFilter"},
        "values": {"()": "hindsight_site.log_lines.ValueFilter"},
    },
    "formatters": {
        "json": {
            "()": "hindsight_site.log_lines.JsonLines",
            "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s %(request_id)s %(team_id)s",
        }
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "json", "filters": ["request", "values"]},
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"level": LOG_LEVEL},
        "django.request": {"level": "ERROR"},  # 4xx are the caller's and answered in full
        "httpx2": {"level": "WARNING"},  # writes addresses of endpoints at INFO
        "httpx": {"level": "WARNING"},  # the same, of a vector index: a line for each recall
        "django-q": {"level": "WARNING"},  # our own rows tell what became of a job
    },
}
