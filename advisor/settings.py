"""One settings file. It works with no environment at all; variables switch it to production.

Every variable is listed in docs/settings.md with its default.
"""

import hashlib
import secrets
import tempfile
from pathlib import Path
from urllib.parse import quote

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from profiling.formats.limits import Limits

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.FileAwareEnv()

VAR_DIR = Path(env.str("ADVISOR_VAR_DIR", str(BASE_DIR / "var"))).resolve()
VAR_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)

LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=LOOPBACK_HOSTS)
PUBLIC = not set(ALLOWED_HOSTS) <= set(LOOPBACK_HOSTS)
"""True when anybody but this machine's user may reach the service; then the unsafe defaults are refused."""

DEBUG = env.bool("DEBUG", default=False)
if DEBUG and PUBLIC:
    raise ImproperlyConfigured("DEBUG is for this machine only: unset DEBUG or take public names from ALLOWED_HOSTS.")


def _secret_key() -> str:
    key = env.str("SECRET_KEY", default="")
    if len(key) >= 50:
        return key
    if key or PUBLIC:
        raise ImproperlyConfigured(
            "SECRET_KEY must have at least 50 characters; make one with: "
            "python -c 'import secrets; print(secrets.token_urlsafe(48))'"
        )
    kept = VAR_DIR / "secret_key"
    if not kept.exists():
        kept.touch(mode=0o600)
        kept.write_text(secrets.token_urlsafe(48))
    return kept.read_text()


SECRET_KEY = _secret_key()

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "simple_history",
    "rest_framework",
    "rest_framework_api_key",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "csp",
    "crispy_forms",
    "crispy_bootstrap5",
    "bootstrap",
    "advisor",
    "catalog",
    "profiling",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    # after the language is known, before anything reads the body or the session
    "advisor.middleware.BoundedBody",
    "advisor.middleware.PrintableAddress",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
]

ROOT_URLCONF = "advisor.urls"
WSGI_APPLICATION = "advisor.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
            ]
        },
    }
]
CRISPY_ALLOWED_TEMPLATE_PACKS = "bootstrap5"
CRISPY_TEMPLATE_PACK = "bootstrap5"

# Data ---------------------------------------------------------------------------------------------------------------

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": VAR_DIR / "advisor.sqlite3"}
DATABASES = {"default": env.db_url("DATABASE_URL") if env.str("DATABASE_URL", "") else SQLITE}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
else:
    DATABASES["default"].update(CONN_MAX_AGE=60, CONN_HEALTH_CHECKS=True)

MEDIA_ROOT = VAR_DIR / "uploads"
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.TemporaryFileUploadHandler"]
FILE_UPLOAD_TEMP_DIR = VAR_DIR / "incoming"
FILE_UPLOAD_TEMP_DIR.mkdir(mode=0o700, exist_ok=True)
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 200
DATA_UPLOAD_MAX_NUMBER_FILES = 1000  # above UPLOAD_MAX_FILES, whose check answers in words

UPLOAD_MAX_BYTES = env.int("UPLOAD_MAX_BYTES", default=2 * 1024**3)
UPLOAD_MAX_FILES = 64
UPLOAD_MAX_SECONDS = 3600
"""What an upload may take; after that its file is taken for lost."""
_limits = Limits()
TRACE_MAX_UNPACKED_BYTES = env.int("TRACE_MAX_UNPACKED_BYTES", default=_limits.bytes_out)
TRACE_MAX_RATIO = env.int("TRACE_MAX_RATIO", default=_limits.ratio)
TRACE_MAX_SECONDS = env.int("TRACE_MAX_SECONDS", default=600)
TRACE_MAX_DEPTH = env.int("TRACE_MAX_DEPTH", default=_limits.depth)
TRACE_MAX_EVENTS = env.int("TRACE_MAX_EVENTS", default=_limits.events)
TRACE_MAX_EVENT_BYTES = env.int("TRACE_MAX_EVENT_BYTES", default=_limits.event_bytes)
TRACE_MAX_METADATA_BYTES = env.int("TRACE_MAX_METADATA_BYTES", default=_limits.metadata_bytes)
TRACE_MAX_BLANK_BYTES = env.int("TRACE_MAX_BLANK_BYTES", default=_limits.blank_bytes)
TRACE_MAX_NAMES = env.int("TRACE_MAX_NAMES", default=_limits.names)
TRACE_MAX_NAME_CHARACTERS = env.int("TRACE_MAX_NAME_CHARACTERS", default=_limits.name_characters)
TRACE_MAX_DEVICES = env.int("TRACE_MAX_DEVICES", default=_limits.devices)
TRACE_MAX_LINE_CHARACTERS = env.int("TRACE_MAX_LINE_CHARACTERS", default=_limits.line_characters)
TRACE_MAX_ROWS = env.int("TRACE_MAX_ROWS", default=_limits.rows)
TRACE_MAX_MEMBERS = env.int("TRACE_MAX_MEMBERS", default=_limits.members)
TRACE_MAX_LAYERS = env.int("TRACE_MAX_LAYERS", default=_limits.layers)
TRACE_MAX_WINDOW_BYTES = env.int("TRACE_MAX_WINDOW_BYTES", default=_limits.window_bytes)

IMPORT_MAX_BYTES = env.int("IMPORT_MAX_BYTES", default=64 * 1024**2)
IMPORT_MAX_ROWS = env.int("IMPORT_MAX_ROWS", default=200_000)
IMPORT_MAX_SECONDS = env.int("IMPORT_MAX_SECONDS", default=600)

# Broker and cache ---------------------------------------------------------------------------------------------------


def _embedded_socket() -> Path:
    """Where `serve` lets its own broker listen; a Unix socket path holds about 100 characters."""
    path = VAR_DIR / "broker.sock"
    if len(str(path)) < 100:
        return path
    name = hashlib.sha256(str(path).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"advisor-{name}.sock"


REDIS_URL = env.str("REDIS_URL", default="")
EMBEDDED_BROKER_SOCKET = None if REDIS_URL else _embedded_socket()
_redis_url = REDIS_URL or f"unix://{quote(str(EMBEDDED_BROKER_SOCKET))}"

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": _redis_url,
        "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
    }
}

# Celery has a scheme of its own for a server on a Unix socket
CELERY_BROKER_URL = _redis_url.replace("unix://", "redis+socket://", 1)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_MAX_TASKS_PER_CHILD = 50
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 1_500_000
CELERY_WORKER_PROC_ALIVE_TIMEOUT = 60
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_SOFT_TIME_LIMIT = TRACE_MAX_SECONDS + 60
CELERY_TASK_TIME_LIMIT = TRACE_MAX_SECONDS + 90
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# Redis redelivers an unacknowledged message after the visibility timeout; recovery comes from the lease of the Run
# long before. Few and short publish retries: a page must not hang for seconds when the broker is away.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.1,
    "socket_connect_timeout": 2,
    "health_check_interval": 5,
}

RUN_LEASE_S = env.int("RUN_LEASE_S", default=30)
RUN_SWEEP_S = env.int("RUN_SWEEP_S", default=10)
RUN_MAX_ATTEMPTS = 3
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "profiling.sweep", "schedule": RUN_SWEEP_S},
    "sweep-imports": {"task": "catalog.sweep", "schedule": RUN_SWEEP_S},
}
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "celerybeat-schedule")

# Language and time --------------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hant", "繁體中文"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "advisor" / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True

# Pages --------------------------------------------------------------------------------------------------------------

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATIC_ROOT.mkdir(exist_ok=True)
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 3600
SESSION_COOKIE_AGE = 90 * 24 * 3600
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC
SECURE_SSL_REDIRECT = PUBLIC and env.bool("SECURE_SSL_REDIRECT", default=True)
SECURE_HSTS_SECONDS = 31_536_000 if PUBLIC else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = PUBLIC
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("BEHIND_TLS_PROXY", default=False) else None
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS if "*" not in host] if PUBLIC else []
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "advisor.errors.csrf_failure"
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
    }
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

# REST ---------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["advisor.api.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["advisor.api.authentication.HasApiKey"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["advisor.api.parsers.BoundedJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "advisor.api.negotiation.KnownFormats",
    "DEFAULT_METADATA_CLASS": "advisor.api.negotiation.NoForms",
    "DEFAULT_PAGINATION_CLASS": "advisor.api.pagination.CursorPages",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["advisor.api.throttling.PerKeyThrottle"],
    "DEFAULT_THROTTLE_RATES": {
        "key": env.str("API_RATE", default="120/min"),
        "download": env.str("API_DOWNLOAD_RATE", default="10/min"),
    },
    "EXCEPTION_HANDLER": "advisor.api.problems.handle",
    "PAGE_SIZE": 50,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Procurement advisor for AI server rental",
    "DESCRIPTION": "What bounds a job, how it scales on every server, and whether NVLink is worth its premium for it.",
    "VERSION": "1.0.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "ProviderKindEnum": "catalog.models.server.ProviderKind",
        "CostKindEnum": "catalog.models.cost_line.CostKind",
        "OfferStatusEnum": "catalog.models.offer.OfferStatus",
        "ImportStatusEnum": "catalog.models.imports.ImportStatus",
        "NameStateEnum": "catalog.models.printed_name.NameState",
        "StateEnum": ["queued", "running", "done", "failed"],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "advisor.api.schema.add_problems",
    ],
}

# Logs ---------------------------------------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", default="WARNING")},
}
