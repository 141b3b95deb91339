"""Pages of the policy: its numbers with their effect and history, and the sweeps that apply them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hindsight_site.accounts import permissions
from hindsight_site.accounts.audit import person
from hindsight_site.accounts.pages import TeamRequest, team_page
from hindsight_site.refusals import Refused
from memories import actions, policy_table, team_policy
from memories.actions.policy import DEFAULTS, wanted
from memories.enums import Rule
from memories.lifecycle.preview import Preview, preview
from memories.models import PolicyVersion, SweepRun
from memories.policy_rows import GROUPS, Row
from memories.policy_table import PRESETS, ROW_OF, Values, defaults, differences, policy_of

SHOWN_VERSIONS = 20
SHOWN_RUNS = 48


@require_http_methods(["GET", "HEAD", "POST"])
@team_page()
def policy_page(request: TeamRequest) -> HttpResponse:
    """Show the policy; save it, or show what it would do before it is saved."""
    standing = team_policy.current(request.team)
    if request.method == "GET":
        preset = PRESETS.get(request.GET.get("preset", ""))
        values = {**defaults(), **preset.values} if preset else team_policy.values_of(standing)
        return _show(request, standing, _typed(values))
    permissions.check_can(request.membership, permissions.MANAGE)
    given = {key: request.POST[key] for key in ROW_OF if key in request.POST}
    try:
        if request.POST.get("do") == "preview":
            values = wanted(standing, given)
            found = preview(team=request.team, life=policy_of(values).life, now=timezone.now())
            return _show(request, standing, given, found=found)
        version = actions.change_policy(
            team=request.team, by=person(request.user), changes=given, note=request.POST.get("note", "").strip(),
            expected_version=_version(request.POST),
        )  # fmt: skip
    except Refused as refusal:
        return _show(request, standing, given, refusal=refusal)
    same = version == standing
    messages.success(request, "Nothing was changed." if same else "Saved. The next sweep and recall go by it.")
    return redirect("policy")


def _version(form: QueryDict) -> int:
    """The version that the form was filled in from; without one, none that could be right."""
    given = form.get("version", "")
    return int(given) if given.isdecimal() and len(given) < 10 else -1


@require_POST
@team_page(permissions.MANAGE)
def policy_restore(request: TeamRequest) -> HttpResponse:
    """Go back to an earlier version of the policy."""
    given = request.POST.get("to", "")
    number = int(given) if given.isdecimal() and len(given) < 10 else -1
    try:
        actions.restore_policy(team=request.team, by=person(request.user), number=number)
    except Refused as refusal:
        messages.error(request, refusal.message)
        return redirect("policy")
    messages.success(request, f"The policy is as it was in {_name(number)}. The history keeps both.")
    return redirect("policy")


@require_safe
@team_page()
def sweeps_page(request: TeamRequest) -> HttpResponse:
    """What the next sweep would do, and what the last ones did."""
    policy = team_policy.of(request.team)
    runs = SweepRun.objects.of(request.team).order_by("-created_at", "-id")[:SHOWN_RUNS]
    context = {
        "found": preview(team=request.team, life=policy.life, now=timezone.now()),
        "runs": [{"run": run, "changed": [(Rule(rule).label, n) for rule, n in run.changed.items()]} for run in runs],
    }
    return render(request, "memories/sweeps.html", context)


def _typed(values: Values) -> dict[str, str]:
    """Numbers as they stand in a form."""
    return {key: f"{value:.10g}" for key, value in values.items()}


def _show(
    request: TeamRequest, standing: PolicyVersion | None, typed: dict[str, str], *, found: Preview | None = None,
    refusal: Refused | None = None,
) -> HttpResponse:  # fmt: skip
    errors = {error.field: error.message for error in refusal.errors} if refusal else {}
    now = team_policy.values_of(standing)
    typed = {**_typed(now), **typed}
    context: dict[str, Any] = {
        "groups": [
            {"group": group, "rows": [_field(row, typed[row.key], now[row.key], errors) for row in group.rows]}
            for group in GROUPS
        ],
        "version": standing.number if standing else DEFAULTS,
        "preset": policy_table.preset_of(now),
        "presets": list(PRESETS.values()),
        "started_from": request.GET.get("preset", ""),
        "found": found,
        "refusal": refusal,
        "note": request.POST.get("note", ""),
        "history": _history(request),
    }
    return render(request, "memories/policy.html", context, status=refusal.status if refusal else 200)


def _field(row: Row, typed: str, now: float, errors: dict[str, str]) -> dict[str, Any]:
    return {
        "row": row,
        "typed": typed,
        "error": errors.get(row.key, ""),
        "default": row.choices[int(row.default)] if row.choices else f"{row.default:.10g}",
        "own": now != row.default,
        "unit": row.unit_of(1 if typed == "1" else 2),
        "step": "1" if row.whole else "any",
    }


def _history(request: TeamRequest) -> list[dict[str, Any]]:
    """The latest versions, newest first, each with what it changed."""
    versions = list(PolicyVersion.objects.of(request.team).order_by("-number")[: SHOWN_VERSIONS + 1])
    before = [*versions[1:], None]
    return [
        {
            "version": version,
            "earlier": earlier.number if earlier else DEFAULTS,
            "changes": [
                (ROW_OF[key], _word(ROW_OF[key], old), _word(ROW_OF[key], new))
                for key, old, new in differences(team_policy.values_of(earlier), team_policy.values_of(version))
            ],
        }
        for version, earlier in zip(versions[:SHOWN_VERSIONS], before, strict=False)
    ]


def _word(row: Row, value: float) -> str:
    return row.choices[int(value)] if row.choices else f"{value:.10g} {row.unit_of(value)}".rstrip()


def _name(number: int) -> str:
    return "the defaults" if number == DEFAULTS else f"version {number}"
