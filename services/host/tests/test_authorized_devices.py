from __future__ import annotations

import pytest

from bothy_host.authorized_devices import AuthorizedDevicesError, read

ALEX = "SHA256:" + "a" * 43
SAM = "SHA256:" + "b" * 43


def reading(tmp_path, text):
    path = tmp_path / "authorized_devices"
    path.write_text(text)
    return read(path)


def test_empty_is_nobody(tmp_path):
    assert not reading(tmp_path, "").allows(ALEX, "shell", "alex")


def test_lines(tmp_path):
    devices = reading(
        tmp_path,
        f"# who\n\n{ALEX} laptop of Alex users=alex,dev profiles=shell\n  {SAM} tablet\n{ALEX} again users=ops\n",
    )
    assert devices.allows(ALEX, "shell", "alex")
    assert devices.allows(ALEX, "any", "ops")
    assert not devices.allows(ALEX, "admin", "alex")
    assert not devices.allows(ALEX, "shell", "robin")
    assert devices.allows(SAM, "admin", "robin")
    assert not devices.allows("SHA256:" + "c" * 43, "shell", "alex")


@pytest.mark.parametrize(
    "line",
    [
        "nonsense laptop",
        "SHA256:short laptop",
        ALEX,
        f"{ALEX} users=alex",
        f"{ALEX} laptop user=alex",
        f"{ALEX} laptop users=a users=b",
        f"{ALEX} laptop users=a behind",
    ],
)
def test_a_bad_line_is_named(tmp_path, line):
    with pytest.raises(AuthorizedDevicesError, match="line 2"):
        reading(tmp_path, f"{SAM} tablet\n{line}\n")


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(AuthorizedDevicesError, match="cannot be read"):
        read(tmp_path / "none")
