"""The Dockerfile, followed step by step: one overlay over this machine's file system for each of its stages."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
# What the base image brings. Our Python may be linked to a library beside it.
BASE = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LD_LIBRARY_PATH": "/usr/local/lib"}


def instructions(text: str) -> list[tuple[str, str]]:
    """The Dockerfile's instructions, in order, with their lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


@dataclass
class Stage:
    """A file system that grows, and what the image will say of how to run in it."""

    root: Path
    folder: str = "/"
    user: str = "root"
    environment: dict[str, str] = field(default_factory=lambda: dict(BASE))
    command: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)


def new_stage(work: Path, name: str) -> Stage:
    """An overlay over this machine's file system, with our Python where the base image has its own."""
    place = work / name
    for part in ("up", "work", "root"):
        (place / part).mkdir(parents=True)
    root = place / "root"
    mount("-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={place}/up,workdir={place}/work", root)
    for own in ("app", "data", "opt/venv"):  # whatever this machine has of that name
        shutil.rmtree(root / own, ignore_errors=True)
    mount("--bind", sys.base_prefix, root / "usr/local")
    mount("-t", "proc", "proc", root / "proc")
    mount("--rbind", "/dev", root / "dev")
    return Stage(root)


def build(work: Path) -> Stage:
    """Do what the Dockerfile says. Returns its last stage."""
    stages: dict[str, Stage] = {}
    stage = Stage(Path("/nowhere"))
    for name, rest in instructions((REPOSITORY / "Dockerfile").read_text(encoding="utf-8")):
        print(f"  {name} {rest[:90]}", flush=True)
        if name == "FROM":
            title = rest.partition(" AS ")[2] or "final"
            stage = stages[title] = new_stage(work, title)
        elif name == "RUN":
            pip = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "HTTP", "SSL_"))}
            run_inside(stage, ["sh", "-ec", rest], extra={**pip, "HOME": str(Path.home())})
        elif name == "COPY":
            copy(stage, stages, rest)
        elif name == "ENV":
            for key, value in re.findall(r"(\w+)=(\S+)", rest):
                stage.environment[key] = value.replace("$PATH", stage.environment["PATH"])
        elif name == "WORKDIR":
            stage.folder = rest
            (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif name == "USER":
            stage.user = rest
        elif name == "CMD":
            stage.command = json.loads(rest)
        elif name == "HEALTHCHECK":
            stage.healthcheck = json.loads(rest.partition(" CMD ")[2])
        elif name not in ("VOLUME", "EXPOSE", "STOPSIGNAL"):
            sys.exit(f"the Dockerfile says {name}, which this script does not know: teach it")
    return stage


def copy(stage: Stage, stages: dict[str, Stage], rest: str) -> None:
    """COPY, from another stage or from the files that .dockerignore lets through."""
    words = rest.split()
    origin = stages[words.pop(0).partition("=")[2]].root if words[0].startswith("--from=") else None
    *sources, target = words
    for source in sources:
        if origin is None and f"!{source}" not in (REPOSITORY / ".dockerignore").read_text().split():
            sys.exit(f".dockerignore keeps {source} from the image")
        here = origin / source.lstrip("/") if origin else REPOSITORY / source
        there = stage.root / (target if target.startswith("/") else f"{stage.folder}/{target}").lstrip("/")
        if here.is_dir():
            skip = None if origin else shutil.ignore_patterns("__pycache__")
            shutil.copytree(here, there, symlinks=True, ignore=skip, dirs_exist_ok=True)
        else:
            shutil.copy2(here, there / here.name if there.is_dir() or target.endswith("/") else there)


def run_inside(stage: Stage, command: list[str], extra: dict[str, str]) -> None:
    shell = ["chroot", str(stage.root), "env", "-i", *pairs({**stage.environment, **extra})]
    subprocess.run([*shell, "sh", "-c", 'cd "$0" && exec "$@"', stage.folder, *command], check=True)


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def pairs(environment: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in environment.items()]
