from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import repeat

TESTS = """
from pathlib import Path

def test_firm(): pass

def test_shaky():
    rounds = Path(__file__).with_name("rounds")
    rounds.write_text(rounds.read_text() + "x" if rounds.exists() else "x")
    assert len(rounds.read_text()) != 2
"""


@pytest.fixture
def shaky(tmp_path: Path) -> str:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    path = tmp_path / "test_it.py"
    path.write_text(TESTS)
    return str(path)


def test_repeat_names_the_test_that_fails_now_and_then(shaky: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert repeat.main(["--rounds", "3", "--load", "1", "--json", shaky]) == 1
    out, news = capsys.readouterr()
    told = json.loads(out)
    assert [each["status"] for each in told["rounds"]] == [0, 1, 0]
    assert [(test.rpartition("::")[2], count) for test, count in told["failed"].items()] == [("test_shaky", 1)]
    assert news.rstrip().splitlines()[-1].split()[:3] == ["1", "of", "3"]


def test_repeat_passes_when_every_round_did(shaky: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert repeat.main(["--rounds", "2", "--load", "0", f"{shaky}::test_firm"]) == 0
    assert capsys.readouterr().out.endswith("no test failed in 2 rounds\n")


def test_repeat_fails_when_nothing_could_be_run(tmp_path: Path) -> None:
    assert repeat.main(["--rounds", "1", "--load", "0", str(tmp_path / "nothing.py")]) == 1


def test_repeat_ends_a_round_that_hangs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text("import threading\n\ndef test_endless(): threading.Event().wait()\n")
    assert repeat.main(["--rounds", "1", "--load", "0", "--minutes", "0.03", str(tmp_path)]) == 1
    assert "did not end" in capsys.readouterr().out  # which test it was shows once pytest has begun one


def test_repeat_leaves_no_load_behind() -> None:
    """However the program ends: what keeps the processors busy looks after its parent."""
    program = "import sys\nimport repeat\nwith repeat.load(1):\n    print(1, flush=True)\n    sys.stdin.read()"
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=Path(repeat.__file__).parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    parent.stdout.readline()
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    assert len(children) == 1
    parent.kill()
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    while (gone := Path(f"/proc/{children[0]}/stat")).exists() and gone.read_text().split()[2] != "Z":
        pass
