"""What the pages name exists, and what the code cites is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

import openapi
from bothy_server.kernel.unit import EventType
from bothy_server.platform.audit import AUDIT_ACTIONS
from bothy_server.platform.operations import operations_of
from bothy_wire import signing
from bothy_wire.frames import Frame
from bothy_wire.signing import Purpose

ROOT = Path(__file__).parents[2]
DOCS, PROTOCOL = ROOT / "docs", ROOT / "docs/spec/protocol.md"
CODE = [
    path
    for folder in ("services", "test", "infra", "tools", "bench")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".md", ".conf", ".ts", ".yaml", ".service"} and "node_modules" not in path.parts
]
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md"))]


def named(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def cells(section: str, columns: int) -> list[list[str]]:
    """The rows of a section's tables that have so many columns, without heads and rules."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return [row for row in rows if len(row) == columns and not set(row[0]) <= {"-", " "}]


def section_of(page: Path, heading: str) -> str:
    return page.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


# ---- links --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", without_code(page.read_text())):
        if "://" not in link:
            assert (page.parent / link).exists(), link


# ---- citations ----------------------------------------------------------------------------------------------------


def headings(page: Path) -> set[str]:
    """The headings of a page in lower case, a letter before one as a heading of its own."""
    found = re.findall(r"^#+ (?:([A-Z])\. )?(.+)$", page.read_text(), re.MULTILINE)
    return {each.lower() for pair in found for each in pair if each}


def rules(page: Path) -> set[str]:
    return set(re.findall(r"^- \*\*([A-Z]\d+[ab]?)\.\*\*", page.read_text(), re.MULTILINE))


def spread(cited: str) -> list[str]:
    """What a citation names: ``H1 to H3`` is each of them."""
    words = re.sub(
        r"\b([A-Z])(\d+) to \1(\d+)\b",
        lambda found: ", ".join(f"{found[1]}{number}" for number in range(int(found[2]), int(found[3]) + 1)),
        cited,
    )
    return [word.strip("`") for word in words.split(", ")]


def test_cited_pages_and_sections_exist() -> None:
    sections = 0
    for path in CODE:
        for page, behind in re.findall(
            r"(docs/[\w/-]+\.(?:md|json|yaml))`*(?:, ([^);\n]*)[);])?", path.read_text(errors="replace")
        ):
            assert (ROOT / page).exists(), f"{path}: {page}"
            for section in spread(behind) if behind else ():
                known = headings(ROOT / page) | {rule.lower() for rule in rules(ROOT / page)}
                assert section.lower() in known, f"{path}: {page}, {section}"
                sections += 1
    assert sections > 10


def test_cited_rules_exist() -> None:
    """A number like E4b in a comment, and one in the name of a test, is a rule of the specification."""
    known = rules(DOCS / "spec/cluster.md") | rules(PROTOCOL)
    cited = set()
    for path in (path for path in CODE if path.suffix == ".py"):
        text = path.read_text()
        cited |= set(re.findall(r"(?:\(|, |[Rr]ules? |to |: )([CDEHLNRSV]\d\d?[ab]?)(?=[):,;. ])", text))
        cited |= {name[0].upper() + name[1:] for name in re.findall(r"def test_([cdehlnrsv]\d\d?[ab]?)_", text)}
    assert cited - known == set()
    assert {"E4b", "L6", "N1a", "H1"} <= cited


# ---- tests --------------------------------------------------------------------------------------------------------


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_named_tests_exist(page: Path) -> None:
    """A test is named by its file and its function; namesakes among the files do not share the function."""
    for name, function in re.findall(r"`([\w/]+\.py)::(\w+)`", page.read_text()):
        found = [path for path in CODE if str(path).endswith(f"/{name}") and function in functions_of(path)]
        assert len(found) == 1, f"{name}::{function} is {len(found)} tests"


def test_names_that_hold_exist() -> None:
    names = re.findall(r"^- `(\w+)`$", section_of(DOCS / "spec/traceability.md", "Names that hold"), re.MULTILINE)
    functions = [name for path in CODE if path.suffix == ".py" for name in functions_of(path)]
    assert len(names) == len(set(names)) > 20
    assert {name: functions.count(name) for name in names} == dict.fromkeys(names, 1)


@pytest.mark.parametrize("page", ["spec/traceability.md", "security.md"])
def test_every_row_has_a_test_or_a_reason(page: str) -> None:
    rows = [row for row in cells((DOCS / page).read_text(), 4) if re.fullmatch(r"[A-Z]{1,3}-\d+", row[0])]
    assert rows
    assert [row[0] for row in rows] == list(dict.fromkeys(row[0] for row in rows))
    for row in rows:
        assert re.search(r"`(?:[\w/]+\.py::\w+|make \w+)`|\b(?:open|not yet): \w", " ".join(row[2:])), row[0]


# ---- tables that repeat the code ----------------------------------------------------------------------------------


def test_the_protocol_page_names_every_problem_of_the_code() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "services/server/bothy_server").rglob("*.py"))
    raised = set(re.findall(r"Problem\(\s*(\d{3}),\s*\"(\w+)\"", source))
    page = section_of(PROTOCOL, "General") + section_of(PROTOCOL, "REST")
    told = set(re.findall(r"\b(\d{3}) `(\w+)`", page)) | set(re.findall(r"^\| (\d{3}) \| `(\w+)`", page, re.MULTILINE))
    assert told == raised


def test_the_protocol_page_names_every_operation_of_the_code() -> None:
    rows = [row for kind in openapi.adapters() for row, _ in operations_of(kind)]
    made = {f"{row.method} {row.path.removeprefix('/api/v1')}" for row in rows}
    told = {re.sub(r"\?.*", "", row[0].strip("`")) for row in cells(section_of(PROTOCOL, "REST"), 5)[1:]}
    assert told == made | {"GET` of a stream or data path"}


def test_the_protocol_page_has_the_signed_fields_of_the_code() -> None:
    tree = ast.parse(Path(signing.__file__).read_text())
    (purposes,) = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == "Purpose"]
    fields = [each.value.value for each in purposes.body[1:] if isinstance(each, ast.Expr)]
    assert cells(section_of(PROTOCOL, "Signatures"), 2)[1:] == [
        [f"`{purpose}`", re.sub(r"``", "`", told)] for purpose, told in zip(Purpose, fields, strict=True)
    ]


def keys_of(page: str) -> set[str]:
    return set(re.findall(r"^\| `([a-z_]+\.[a-z_]+)`", (DOCS / "operations" / page).read_text(), re.MULTILINE))


@pytest.mark.parametrize(
    "page", [*DOCS.glob("spec/*.md"), DOCS / "security.md", *DOCS.glob("operations/*.md")], ids=str
)
def test_named_keys_exist(page: Path) -> None:
    """What looks like a key is one of a program, or a frame, a signal, an event, an action or a column of the wire and the rows."""
    keys = keys_of("configuration.md") | keys_of("host.md") | keys_of("bothy.md")
    frames = {each.__struct_config__.tag for each in Frame.__subclasses__()}
    signals = set(re.findall(r"`(terminal\.\w+)`", section_of(DOCS / "spec/signals.md", "Kinds")))
    columns = {
        f"{table}.{column}"
        for table, names in cells(section_of(DOCS / "spec/data.md", "Tables"), 2)
        for column in names.split(", ")
    }
    known = keys | frames | signals | columns | set(get_args(EventType)) | set(AUDIT_ACTIONS)
    groups = {key.partition(".")[0] for key in keys}
    named = set(re.findall(r"`([a-z_]+\.(?!toml`)[a-z_]+)`", page.read_text()))
    assert {each for each in named if each.partition(".")[0] in groups} - known == set()


def test_every_service_and_feature_has_a_readme() -> None:
    services = [path.parent for path in (ROOT / "services").glob("*/bothy_*")]
    features = [path.parent for path in (ROOT / "services/server/bothy_server").glob("*/__init__.py")]
    assert len(services) >= 4
    assert [str(folder) for folder in (*services, *features) if not (folder / "README.md").exists()] == []


def test_metrics_page_has_the_metrics_of_the_code() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "services/server/bothy_server").rglob("*.py"))
    made = set(re.findall(r"\b(?:gauge|counter)\(\s*\"(bothy\.[\w.]+)\"", source))
    told = {row[0].strip("`") for row in cells((DOCS / "operations/metrics.md").read_text(), 4)}
    assert made
    assert {each for each in told if each.startswith("bothy.")} == made


def test_log_records_of_several_nodes_are_those_of_the_code() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "services/server/bothy_server").rglob("*.py"))
    rows = cells(section_of(DOCS / "spec/cluster.md", "Log records"), 3)[1:]
    assert rows
    for record, level, attributes in rows:
        call = re.search(rf'_log\.{level}\(\s*"{record.strip("`")}"(?:,\s*extra=(\{{[^}}]*\}}))?', source)
        assert call, record
        assert re.findall(r'"([\w.]+)":', call[1] or "") == re.findall(r"`([\w.]+)`", attributes), record


def test_troubleshooting_page_has_every_close_code_and_problem() -> None:
    page = (DOCS / "operations/troubleshooting.md").read_text()
    codes = {row[0] for row in cells((DOCS / "spec/close-codes.md").read_text(), 6)[1:]}
    problems = set(re.findall(r"\d{3} `(\w+)`", section_of(PROTOCOL, "REST"))) | {
        row[1].strip("`") for row in cells(section_of(PROTOCOL, "General"), 3)[1:]
    }
    assert codes - {row[0] for row in cells(page, 3)} == set()
    assert {f"`{each}`" for each in problems} - {row[0] for row in cells(page, 3)} == set()
