"""What both API documents are made with: schemas of the wire's types, words from docstrings and from the protocol's page."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import yaml  # type: ignore[import-untyped]  # its stubs are no dependency of ours

from bothy_wire.limits import NAME_BYTES

PROTOCOL = Path("docs/spec/protocol.md")
Document = dict[str, Any]
Lengths = tuple[int, int | None]
"""The fewest and the most bytes."""
_ANY: Lengths = (0, None)

ID_PATTERN = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_NAME = {"maxLength": NAME_BYTES, "minLength": 1}


def prose(doc: str | None) -> str:
    """A docstring as Markdown: roles become code, each paragraph one line."""
    text = re.sub(r":\w+:`~?[\w.]*?(\w+)`", r"`\1`", inspect.cleandoc(doc or "")).replace("``", "`")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def schemas(kinds: Iterable[type], told: Mapping[str, str], prose: Callable[[str | None], str] = prose) -> Document:
    """The schemas of these types and of what they are made of, by name.

    ``told`` has the meaning of fields, by ``Class.field`` (which says more) or by ``field``; ``prose`` reads docstrings.
    """
    roots = list(kinds)
    _, found = msgspec.json.schema_components(roots, ref_template="#/components/schemas/{name}")
    lengths = dict(_lengths(msgspec.inspect.multi_type_info(roots)))
    made = {}
    for name, schema in sorted(found.items()):
        fields = {field: _exact(kind, lengths.get((name, field), _ANY)) for field, kind in schema["properties"].items()}
        made[name] = _described(name, {**schema, "properties": fields}, told, prose)
    return made


def field_meanings(heading: str) -> dict[str, str]:
    """A table of the protocol's page."""
    section = PROTOCOL.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([\w.]+)` \| (.+) \|$", section, re.MULTILINE))


def attribute_docs(source: str) -> dict[str, str]:
    """The docstrings below the attributes of a module's classes, by ``Class.name``."""
    found = {}
    for each in ast.parse(source).body:
        if isinstance(each, ast.ClassDef):
            for attribute, below in pairwise(each.body):
                match attribute, below:
                    case (
                        (ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)])),
                        ast.Expr(value=ast.Constant(value=str(doc))),
                    ):
                        found[f"{each.name}.{name}"] = doc
                    case _:
                        pass
    return found


def page(head: str, document: Document) -> str:
    """The text of the file."""
    body: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return f"# {head}\n{body}"


def write_or_check(path: Path, text: Callable[[], str]) -> int:
    """Write the file; with ``--check`` only look. The exit status: 1 for a stale one."""
    if "--check" not in sys.argv[1:]:
        path.write_text(text())
    elif not path.exists() or path.read_text() != text():
        print(f"{path} is stale: run make api")
        return 1
    return 0


# ---- schemas ------------------------------------------------------------------------------------------------------


def _exact(schema: Any, lengths: Lengths) -> Any:
    """A schema as strict as ``bothy_wire.strict_json``: ids and bytes have one spelling. Patterns in ECMA's dialect."""
    match schema:
        case {"format": "uuid"}:
            return {**schema, "pattern": ID_PATTERN}
        case {"contentEncoding": "base64"}:
            return {**schema, **_base64(*lengths)}
        case {"pattern": str(pattern)}:
            return {**schema, "pattern": pattern.replace(r"\A", "^").replace(r"\Z", "$")}
        case dict():
            return {name: _exact(each, lengths) for name, each in schema.items()}
        case list():
            return [_exact(each, lengths) for each in schema]
        case _:
            return schema


_DIGIT = "[A-Za-z0-9+/]"
_LAST = {0: "", 1: f"{_DIGIT}[AQgw]==", 2: f"{_DIGIT}{{2}}[AEIMQUYcgkosw048]="}
"""The last digits by the bytes in them: what a digit has beyond a byte is zero."""


def _base64(least: int, most: int | None) -> Document:
    """Of so many bytes. The length in digits says it to three only, so the last digits of the longest text say the rest."""
    groups, rest = divmod(most or 0, 3)
    if least == most:
        return {"pattern": f"^{_DIGIT}{{{4 * groups}}}{_LAST[rest]}$"}
    any_length = {"pattern": f"^(?:{_DIGIT}{{4}})*(?:{_LAST[1]}|{_LAST[2]})?$"}
    if most is None or rest == 0:
        return any_length
    return {**any_length, "not": {"minLength": 4 * (groups + 1), "pattern": "[^=].$" if rest == 1 else "[^=]$"}}


def _lengths(types: Iterable[msgspec.inspect.Type]) -> Iterator[tuple[tuple[str, str], Lengths]]:
    """How many bytes each field of bytes holds, by struct and field."""
    waiting, known = list(types), set()
    while waiting:
        match waiting.pop():
            case msgspec.inspect.StructType(cls=kind, fields=fields) if kind not in known:
                known.add(kind)
                for field in fields:
                    inside = [field.type, *getattr(field.type, "types", ())]
                    waiting += inside
                    for each in inside:
                        if isinstance(each, msgspec.inspect.BytesType):
                            yield (kind.__name__, field.encode_name), (each.min_length or 0, each.max_length)
            case msgspec.inspect.CollectionType(item_type=each):
                waiting.append(each)
            case msgspec.inspect.UnionType(types=each):
                waiting += each
            case msgspec.inspect.DictType(value_type=each):
                waiting.append(each)
            case _:
                pass


def _described(
    name: str, schema: Mapping[str, Any], told: Mapping[str, str], prose: Callable[[str | None], str]
) -> Document:
    fields = {}
    for field, kind in schema["properties"].items():
        words = [told.get(f"{name}.{field}") or told.get(field), _measure(kind)]
        described = {"description": " ".join(prose(each) for each in words if each)} if any(words) else {}
        # No reference has siblings: not every reader of these documents takes them.
        fields[field] = {**({"allOf": [kind]} if "$ref" in kind else kind), **described}
    return {**schema, "description": prose(schema.get("description")), "properties": fields}


def _measure(kind: Mapping[str, Any]) -> str | None:
    """What a schema cannot say of a name."""
    return f"At most {NAME_BYTES} bytes of UTF-8." if {**kind, **_NAME} == kind and "pattern" in kind else None


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # untyped, see above
    """Repeats equal parts instead of pointing at them, and folds paragraphs: the reader is a person."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml's form
        return True

    def represent_text(self, data: str) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=">" if "\n" in data else None)


_Dumper.add_representer(str, _Dumper.represent_text)
