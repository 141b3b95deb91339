"""Imports run one way: accounts ← memories ← reflection, and faces import domain modules, never the reverse."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("hindsight_site.accounts", "memories", "reflection")
# What every app stands on may import none of them; these site modules wire the apps together.
WIRING = {"marks", "plots", "urls", "overview", "wsgi", "asgi", "settings", "demo_team", "demo", "connect"}
FACES = {"api", "mcp", "views", "admin", "tasks", "urls", "management", "templatetags"}
PURE = (
    "memories/ranking.py", "memories/packing.py", "memories/confidence.py", "memories/policy.py",
    "memories/policy_rows.py", "memories/policy_table.py", "memories/lifecycle/rules.py",
    "memories/lifecycle/capacity.py", "memories/importance.py",
    "memories/search/tokens.py", "memories/search/fusion.py", "memories/safety", "reflection/forms.py",
    "reflection/triggers.py", "reflection/prepare.py", "reflection/distill", "reflection/admission.py",
    "reflection/review/statistics.py", "reflection/review/metrics.py", "reflection/review/charts.py",
)  # fmt: skip


def modules() -> list[Path]:
    folders = (ROOT / "hindsight_site", ROOT / "memories", ROOT / "reflection")
    return [path for folder in folders for path in folder.rglob("*.py") if "migrations" not in path.parts]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    package = name_of(path) if path.stem == "__init__" else name_of(path).rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            found |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return found


def layer_of(module: str) -> int | None:
    return next((i for i, layer in enumerate(LAYERS) if module == layer or module.startswith(layer + ".")), None)


def is_face(module: str) -> bool:
    return bool(FACES & set(module.split(".")))


def test_no_layer_imports_a_higher_one() -> None:
    backward = [
        f"{name_of(path)} → {target}"
        for path in modules()
        if (own := layer_of(name_of(path))) is not None
        for target in imports_of(path)
        if (other := layer_of(target)) is not None and other > own
    ]
    assert backward == []


def test_the_ground_floor_imports_no_app() -> None:
    backward = [
        f"{name_of(path)} → {target}"
        for path in modules()
        if (parts := name_of(path).split("."))[0] == "hindsight_site"
        and len(parts) > 1
        and parts[1] not in {*WIRING, "accounts", "management", "api", "mcp", "templatetags"}
        for target in imports_of(path)
        if layer_of(target) in (1, 2)
    ]
    assert backward == []


def test_domain_modules_import_no_face() -> None:
    backward = [
        f"{name_of(path)} → {target}"
        for path in modules()
        if layer_of(name_of(path)) is not None and not is_face(name_of(path))
        for target in imports_of(path)
        if layer_of(target) is not None and is_face(target)
    ]
    assert backward == []


def test_pure_modules_know_no_orm() -> None:
    impure = []
    for pure in PURE:
        place = ROOT / pure
        for path in [place] if place.is_file() else place.rglob("*.py"):
            for target in imports_of(path):
                if target.startswith("django.db.models.") and target != "django.db.models.TextChoices":
                    impure.append(f"{name_of(path)} → {target}")
                if target.startswith(("memories.models", "reflection.models", "hindsight_site.accounts.models")):
                    impure.append(f"{name_of(path)} → {target}")
    assert impure == []


def test_only_settings_read_the_environment() -> None:
    readers = [
        name_of(path)
        for path in modules()
        if "os.environ" in path.read_text(encoding="utf-8") or "getenv(" in path.read_text(encoding="utf-8")
    ]
    # wsgi and asgi name the settings module; the supervisor and the embedded database start programs; the bridge
    # is also a command without the site.
    allowed = {f"hindsight_site.{name}" for name in ("settings", "wsgi", "asgi", "supervisor", "mcp.bridge.cli")}
    assert [name for name in readers if name not in allowed and "embedded_db" not in name] == []


def test_only_the_queue_module_enqueues() -> None:
    callers = [name_of(path) for path in modules() if any(t.endswith("async_task") for t in imports_of(path))]
    assert callers == ["hindsight_site.queue"]
