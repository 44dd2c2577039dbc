"""Runs programs in worker processes, which may crash or hang, and collects what they find.

A worker writes one line of JSON before and after each program. The parent restarts it where it ended, or where it was
silent for too long, and after so many programs, since compiled programs take memory.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzzing import crashes
from tests.fuzzing.builder import build
from tests.fuzzing.families import TABLE
from tests.fuzzing.judge import Disagreement, Outside, judge
from tests.fuzzing.modes import Case
from tests.fuzzing.profiles import PROFILES
from tests.fuzzing.report import script
from tests.fuzzing.shrink import same_way, shrink

SILENCE = 400.0  # seconds after which a program counts as one that hangs; the machine may be busy
PROGRAMS = 150  # of one worker
ROOT = Path(__file__).resolve().parents[2]


# ---- one program ---------------------------------------------------------------------------------------------


def examine(profile: str, seed: int, every: bool, outside: Outside | None = None) -> Iterator[dict[str, Any]]:
    """What is to be said of one program: what it is, how it was judged, and if it disagrees, a short one that does."""
    program, refused = build(PROFILES[profile], seed, TABLE)
    case = Case(program, seed)
    yield {"begin": seed, "source": program.source()}
    verdict = judge(case, every, outside=outside, notify=lambda mode: say({"at": mode}))
    yield {
        "end": seed,
        "modes": verdict.modes,
        "features": sorted(program.features),
        "refused": [str(r)[:400] for r in refused],
        "unknown": verdict.unknown,
        "excused": [str(d)[:400] for d in verdict.excused],
        "unstable": [str(d)[:400] for d in verdict.unstable],
        "disagreements": [str(d)[:1200] for d in verdict.disagreements],
    }
    if verdict.disagreements:
        yield {"short": seed, "script": shortened(case, verdict.disagreements[0], outside)}


def shortened(case: Case, found: Disagreement, outside: Outside | None) -> str:
    """A short program that disagrees in the same way, as a script."""
    modes = {"values": "jit", "tangents": "jvp jit", "cotangents": "vjp jit", "second": "jvp of vjp"}
    only = ("jit", modes.get(found.quantity, "jit") if found.mode.startswith("trace") else found.mode)

    def judged(program: Any) -> Any:
        return judge(Case(program, case.seed), only=only, outside=outside if found.reference == "JAX" else None)

    program = shrink(case.program, same_way(judged, found.kind(), case.program))
    short = Case(program, case.seed)
    still = [str(d) for d in judged(program).disagreements]
    return script(short, [found.mode]) + "\n# " + "\n# ".join("\n".join(still[:3])[:1500].split("\n"))


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def work(profile: str, seeds: range, every: bool, outside: Outside | None) -> None:
    """The worker's loop."""
    for seed in seeds:
        for message in examine(profile, seed, every, outside):
            say(message)


# ---- many programs -------------------------------------------------------------------------------------------


@dataclass
class Tally:
    programs: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    unstable: list[str] = field(default_factory=list)
    excused: list[str] = field(default_factory=list)
    disagreements: dict[int, str] = field(default_factory=dict)

    def take(self, message: dict[str, Any]) -> None:
        self.programs += 1
        self.modes.update(message["modes"])
        self.features.update(message["features"])
        self.refused.update(message["refused"])
        self.unknown.update(message["unknown"])
        self.unstable += [f"{message['end']}: {text}" for text in message["unstable"]]
        self.excused += [f"{message['end']}: {text}" for text in message["excused"]]
        if message["disagreements"]:
            self.disagreements[message["end"]] = "\n".join(message["disagreements"])

    def lines(self) -> Iterator[str]:
        runs = sum(self.modes.values())
        yield f"{self.programs} programs, {runs} runs in {len(self.modes)} modes, {len(self.features)} features"
        yield "modes: " + ", ".join(f"{name} {n}" for name, n in self.modes.most_common())
        yield "features: " + ", ".join(f"{name} {n}" for name, n in self.features.most_common())
        for title, counter in (("refused", self.refused), ("unknown to the oracle", self.unknown)):
            yield f"{title}: {sum(counter.values())}"
            yield from (f"  {n} {text}" for text, n in counter.most_common(20))
        for title, texts in (
            ("what rounding decides", self.unstable),
            ("cotangents that JAX has otherwise", self.excused),
        ):
            yield f"{title}: {len(texts)}"
            yield from ("  " + text[:200] for text in texts[:20])
        yield f"disagreements: {len(self.disagreements)}  of seeds {sorted(self.disagreements)}"


class Worker:
    """A process that runs programs from a seed on; `messages` ends with its exit status."""

    def __init__(self, profile: str, start: int, every: bool, jax: bool) -> None:
        self.profile = profile
        command = [sys.executable, "-m", "tests.fuzzing", "--worker", "--profile", profile, "--seed", str(start)]
        command += ["--count", str(PROGRAMS), *(["--every"] if every else []), *(["--jax"] if jax else [])]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"TAPELESS_CACHE": "0"},
        )
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.errors: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._drain, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            if line.startswith("{"):
                self._queue.put(json.loads(line))
        self._queue.put(None)

    def _drain(self) -> None:
        for line in self.process.stderr or ():
            self.errors = [*self.errors[-30:], line]

    def messages(self, until: float) -> Iterator[dict[str, Any]]:
        while True:
            try:
                message = self._queue.get(timeout=max(1.0, min(SILENCE, until - time.monotonic() + SILENCE / 4)))
            except queue.Empty:
                self.process.kill()
                yield {"dead": "hangs" if time.monotonic() < until else ""}
                return
            if message is None:
                status = self.process.wait()
                yield {"dead": f"exit status {status}\n{''.join(self.errors[-12:])}" if status else ""}
                return
            yield message


def run(profile: str, seed: int, minutes: float, every: bool, jax: bool, write: Any) -> Tally:
    """Programs from a seed on for so many minutes; each disagreement is written when it is found."""
    tally, until = Tally(), time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        seed = _one_worker(Worker(profile, seed, every, jax), seed, until, tally, write)
        write(f"up to seed {seed - 1}: {tally.programs} programs, {len(tally.disagreements)} that disagree")
    return tally


def _one_worker(worker: Worker, seed: int, until: float, tally: Tally, write: Any) -> int:
    """The seed to go on with."""
    open_program, source, mode = False, "", ""
    for message in worker.messages(until):
        if "begin" in message:
            seed, source, open_program = message["begin"], message["source"], True
        elif "at" in message:
            mode = message["at"]
        elif "end" in message:
            open_program = False
            tally.take(message)
            for text in message["disagreements"][:1]:
                write(f"---- seed {message['end']}: {text}")
            if time.monotonic() > until and not message["disagreements"]:
                worker.process.kill()
                break
        elif "short" in message:
            write(message["script"] + "\n")
        elif message["dead"] and open_program:
            tally.programs += 1
            tally.disagreements[seed] = message["dead"]
            write(f"---- seed {seed}: the process ended in mode {mode}: {message['dead']}\n{source}\n")
            if not message["dead"].startswith("hangs"):
                write(crashes.shortened(worker.profile, seed, mode) + "\n")
        elif message["dead"]:
            write(f"---- after seed {seed}: the process ended: {message['dead']}")
    worker.process.wait()
    return seed + 1
