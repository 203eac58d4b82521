"""Look for known weaknesses in the locked dependencies: ``python tools/audit.py``.

The question needs the advisory service of the Python package index. Where nobody answers, this says so and succeeds:
nothing is known to be wrong. With ``--strict`` it fails.
"""

from __future__ import annotations

import json
import subprocess
import sys


def verdict(status: int, output: str, errors: str, *, strict: bool) -> tuple[int, str]:
    """What a run of pip-audit means: the exit status and the words for it."""
    if not output.strip():
        reason = errors.strip().splitlines()[-1:] or [f"pip-audit ended with {status}"]
        return int(strict), f"NOT AUDITED: the advisory service did not answer ({reason[0]})"
    dependencies = json.loads(output)["dependencies"]
    known = [
        f"{each['name']} {each['version']}: {weakness['id']}, fixed in {', '.join(weakness['fix_versions']) or 'nothing'}"
        for each in dependencies
        for weakness in each.get("vulns", ())
    ]
    skipped = sum("skip_reason" in each for each in dependencies)
    words = [*known]
    if skipped:
        words.append(f"NOT AUDITED: {skipped} of {len(dependencies)} dependencies; the service does not know them")
    if skipped < len(dependencies):
        words.append(f"{len(dependencies) - skipped} dependencies audited, {len(known)} weaknesses")
    return int(bool(known) or (strict and bool(skipped))), "\n".join(words)


def main() -> int:
    """The exit status: 1 when a weakness is known, or when something could not be asked and ``--strict`` is given."""
    command = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", "-r", "requirements.lock"]
    options = ["--format", "json", "--timeout", "20", "--progress-spinner", "off"]
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    status, words = verdict(run.returncode, run.stdout, run.stderr, strict="--strict" in sys.argv[1:])
    print(words)
    return status


if __name__ == "__main__":
    sys.exit(main())
