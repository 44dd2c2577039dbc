"""Record what the examples of the reference show, in docs/shown_examples.json: python docs/make_examples.py

Without arguments all examples run, which takes two minutes; namespaces may be named. Tests run those of some
namespaces, and compare the calls of all with what is recorded.
"""

import functools
import json
import sys
from pathlib import Path

import example_calls

RECORD = Path(__file__).with_name("shown_examples.json")


@functools.cache
def recorded() -> dict[str, dict[str, str]]:
    """Read what examples show, by namespace and name: the call behind `>>>`, then the result."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def record(namespaces: list[str]) -> None:
    """Run the examples of namespaces, and write what they show into the record."""
    found = recorded() if RECORD.exists() else {}
    for namespace in namespaces:
        found[namespace] = example_calls.shown_examples(namespace)
    RECORD.write_text(json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(sys.argv[1:] or example_calls.namespaces())
