"""What protects every answer: headers, cookies, and settings that Django's own check has nothing against."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site
from django.test import Client

from hindsight_site.accounts.models import User
from tests import factories

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]
NO_PAGE = "/no-such-page/"

# Every kind of answer: pages with and without a login, errors, admin, API, reference, files, metadata.
PUBLIC = (
    "/login/", NO_PAGE, "/api/v1/docs", "/api/v1/schema", "/api/v1/me", "/api/v1/no-such-call", "/healthz", "/readyz",
    "/.well-known/jwks.json", "/static/css/base.css", "/admin/login/", "/oauth/authorize",
)  # fmt: skip
PAGES = (
    "/", "/review/", "/memories/", "/traces/", "/connect/", "/connect/coder/", "/audit/", "/audit/download/", "/team/",
    "/team/settings/", "/usage/", "/account/", "/account/security/", NO_PAGE,
)  # fmt: skip
ADMIN = ("/admin/", "/admin/accounts/agent/", "/admin/memories/memory/", "/admin/accounts/user/add/")
MEMBERS_ONLY = "/team/settings/"


def directives(answer: Any) -> dict[str, list[str]]:
    """The Content-Security-Policy of an answer, by directive."""
    parts = [part.split() for part in answer["Content-Security-Policy"].split(";")]
    return {name: values for name, *values in parts}


def check_headers(answer: Any, path: str) -> None:
    policy = directives(answer)
    assert policy["default-src"] == ["'none'"], path
    assert policy["script-src"] == ["'self'"], path
    assert policy["frame-ancestors"] == policy["base-uri"] == ["'none'"], path
    assert policy["form-action"] == ["'self'"], path
    inline = {name for name, values in policy.items() if "'unsafe-inline'" in values}
    assert inline == ({"style-src"} if path == "/api/v1/docs" else set()), path
    assert "unsafe-eval" not in answer["Content-Security-Policy"], path
    assert not re.search(r"https?:|\*", answer["Content-Security-Policy"]), path
    assert answer["X-Content-Type-Options"] == "nosniff", path
    assert answer["Referrer-Policy"] == "same-origin", path
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin", path
    assert answer["X-Request-ID"], path
    if not path.startswith("/static/"):
        assert answer["X-Frame-Options"] == "DENY", path


def check_nothing_inline(answer: Any, path: str) -> None:
    """What the policy would block is not there in the first place."""
    if answer.streaming or not answer["Content-Type"].startswith("text/html"):
        return
    page = answer.content.decode()
    scripts = re.findall(r"<script\b([^>]*)>", page)
    assert all("src=" in given or "application/json" in given for given in scripts), path
    assert not re.search(r"<[^>]*\s(?:on\w+|style)=", page), path
    assert "<style" not in page or path == "/api/v1/docs", path


@pytest.mark.parametrize("path", PUBLIC)
def test_answers_to_anybody(path, client) -> None:
    answer = client.get(path)
    check_headers(answer, path)
    check_nothing_inline(answer, path)
    answer.close()


@pytest.mark.parametrize("path", PAGES)
def test_pages(path, alice, agent, browse) -> None:
    answer = browse(alice).get(path)
    assert answer.status_code == (404 if path == NO_PAGE else 200)
    check_headers(answer, path)
    check_nothing_inline(answer, path)


def test_a_refused_page(carol, browse) -> None:
    answer = browse(carol).get(MEMBERS_ONLY)
    assert answer.status_code == 403
    check_headers(answer, MEMBERS_ONLY)


@pytest.mark.parametrize("path", ADMIN)
def test_the_admin(path, alice, browse) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_superuser=True)
    answer = browse(alice).get(path)
    assert answer.status_code == 200
    check_headers(answer, path)
    check_nothing_inline(answer, path)


def test_our_templates_hold_nothing_inline() -> None:
    for template in (ROOT / "templates").rglob("*.html"):
        text = re.sub(r"{%.*?%}|{{.*?}}|{#.*?#}", "", template.read_text(encoding="utf-8"), flags=re.S)
        assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", text), template
        assert not re.search(r"<[a-z][^>]*\s(?:on\w+|style)=", text), template


@pytest.mark.parametrize("secure", [True, False])
def test_https_is_remembered_where_the_site_has_it(settings, secure) -> None:
    settings.SECURE_HSTS_SECONDS = 31_536_000
    settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = settings.SECURE_HSTS_PRELOAD = True
    answer = Client().get("/login/", secure=secure)
    expected = "max-age=31536000; includeSubDomains; preload" if secure else None
    assert answer.headers.get("Strict-Transport-Security") == expected


@pytest.mark.parametrize("https", [True, False])
def test_the_session_cookie(alice, settings, https) -> None:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = https
    browser = Client()
    browser.get("/login/", secure=https)
    done = browser.post("/login/", {"username": alice.email, "password": factories.PASSWORD}, secure=https)
    assert done.status_code == 302
    cookie = browser.cookies[site.SESSION_COOKIE_NAME]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert bool(cookie["secure"]) == https
    assert not cookie["domain"]
    assert bool(browser.cookies[site.CSRF_COOKIE_NAME]["secure"]) == https


# --- As in production ------------------------------------------------------------------------------


def in_production(*arguments: str, tmp: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Python in this repository as an operator with an https site would."""
    kept = {name: value for name, value in os.environ.items() if name not in {"SECRET_KEY", "DEBUG"}}
    env = {
        **kept,
        "SITE_URL": "https://memory.example.org",
        "ALLOWED_HOSTS": "memory.example.org",
        "HINDSIGHT_DATA_DIR": str(tmp),
        "DJANGO_SETTINGS_MODULE": "hindsight_site.settings",
        **more,
    }
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("trusts_proxy", ["0", "1"])
def test_djangos_check_of_a_deployment_is_clean(tmp_path, trusts_proxy) -> None:
    done = in_production(
        "manage.py", "check", "--deploy", "--fail-level", "WARNING",
        tmp=tmp_path, SECRET_KEY=secrets.token_urlsafe(50), TRUST_PROXY_SSL_HEADER=trusts_proxy,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout
    assert "WARNING" not in done.stderr


@pytest.mark.parametrize(("trusts_proxy", "redirects"), [("0", False), ("1", True)])
def test_an_https_site_sets_what_it_must(tmp_path, trusts_proxy, redirects) -> None:
    names = (
        "DEBUG", "SESSION_COOKIE_SECURE", "SESSION_COOKIE_HTTPONLY", "CSRF_COOKIE_SECURE", "SECURE_HSTS_SECONDS",
        "SECURE_HSTS_INCLUDE_SUBDOMAINS", "SECURE_SSL_REDIRECT", "CSRF_TRUSTED_ORIGINS", "X_FRAME_OPTIONS",
    )  # fmt: skip
    code = f"import json; from django.conf import settings as s; print(json.dumps([getattr(s, n) for n in {names!r}]))"
    done = in_production("-c", code, tmp=tmp_path, TRUST_PROXY_SSL_HEADER=trusts_proxy)
    assert dict(zip(names, json.loads(done.stdout), strict=True)) == {
        "DEBUG": False,
        "SESSION_COOKIE_SECURE": True,
        "SESSION_COOKIE_HTTPONLY": True,
        "CSRF_COOKIE_SECURE": True,
        "SECURE_HSTS_SECONDS": 31_536_000,
        "SECURE_HSTS_INCLUDE_SUBDOMAINS": True,
        "SECURE_SSL_REDIRECT": redirects,
        "CSRF_TRUSTED_ORIGINS": ["https://memory.example.org"],
        "X_FRAME_OPTIONS": "DENY",
    }


def test_plain_http_is_sent_to_https_but_the_watchers(settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert Client().get("/login/")["Location"] == "https://testserver/login/"
    assert Client().get("/healthz").status_code == 200
    assert Client().get("/login/", headers={"X-Forwarded-Proto": "https"}).status_code == 200
