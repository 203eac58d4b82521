from __future__ import annotations

import os

import pytest

from bothy_host.authorized_devices import MAX_BYTES, AuthorizedDevicesError, read

ALEX = "SHA256:" + "a" * 43
SAM = "SHA256:" + "b" * 43
NOBODY = 65534


@pytest.fixture
def listed(tmp_path):
    """The file, as only its owner may write it."""
    path = tmp_path / "authorized_devices"
    path.touch(mode=0o600)
    return path


@pytest.fixture
def reading(listed):
    def reading(content):
        listed.write_bytes(content.encode() if isinstance(content, str) else content)
        return read(listed)

    return reading


def admits(devices, fingerprint=ALEX):
    return devices.allows(fingerprint, "shell", "alex")


def test_empty_is_nobody(reading):
    assert not admits(reading(""))


def test_lines(reading):
    devices = reading(
        f"# who\n\n{ALEX} laptop of Alex users=alex,dev profiles=shell\n  {SAM} tablet\n{ALEX} again users=ops\n"
    )
    assert devices.allows(ALEX, "shell", "alex")
    assert devices.allows(ALEX, "any", "ops")
    assert not devices.allows(ALEX, "admin", "alex")
    assert not devices.allows(ALEX, "shell", "robin")
    assert devices.allows(SAM, "admin", "robin")
    assert not devices.allows("SHA256:" + "c" * 43, "shell", "alex")


def test_a_line_twice_admits_once_and_no_more(reading):
    devices = reading(f"{ALEX} laptop users=alex\n{ALEX} laptop users=alex\n")
    assert devices.allows(ALEX, "shell", "alex")
    assert not devices.allows(ALEX, "shell", "sam")


@pytest.mark.parametrize(
    "content",
    [
        f"{ALEX} laptop\r\n",
        f"\r\n# who\r\n{ALEX}\tlaptop\tusers=alex\r\n",
        f"\ufeff{ALEX} laptop\n",
        f"\ufeff# who\n{ALEX} laptop\n",
        f"{ALEX} Jürgens Täblet\n",
    ],
)
def test_what_editors_write_is_understood(reading, content):
    assert admits(reading(content))


@pytest.mark.parametrize("content", [f"#{ALEX} laptop\n", f"  # {ALEX} laptop\n", f"# old\u2028{ALEX} laptop\n"])
def test_a_comment_admits_nobody(reading, content):
    assert not admits(reading(content))


@pytest.mark.parametrize(
    "line",
    [
        "nonsense laptop",
        "SHA256:short laptop",
        f"{ALEX}= laptop",
        ALEX.lower() + " laptop",
        ALEX,
        f"{ALEX} users=alex",
        f"{ALEX} laptop user=alex",
        f"{ALEX} laptop users=a users=b",
        f"{ALEX} laptop users=a behind",
        f"{ALEX} laptop users = a",
        f"{ALEX} laptop users=",
        f"{ALEX} laptop users=a,",
        f"{ALEX} laptop users=a, b",
        f"{ALEX} laptop users=@dev",
        f"{ALEX} laptop profiles=,shell",
    ],
)
def test_a_bad_line_is_named(reading, line):
    with pytest.raises(AuthorizedDevicesError, match="line 2"):
        reading(f"{SAM} tablet\n{line}\n")


@pytest.mark.parametrize("hidden", ["\r", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85", "\u202e", "\u200b", "\0"])
def test_a_name_hides_no_second_line(reading, hidden):
    with pytest.raises(AuthorizedDevicesError, match="line 1: holds a character that cannot be seen"):
        reading(f"{SAM} tablet{hidden}{ALEX} laptop\n")


@pytest.mark.parametrize("kept", range(1, len(ALEX) + len(" laptop users=sam profiles=admin\n")))
def test_a_half_written_line_admits_nobody(reading, kept):
    whole = f"{ALEX} laptop users=sam profiles=admin\n"
    with pytest.raises(AuthorizedDevicesError, match="its last line has no end"):
        reading(f"{SAM} tablet\n{whole[:kept]}")


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(AuthorizedDevicesError, match="cannot be read"):
        read(tmp_path / "none")


@pytest.mark.parametrize("content", [b"\xff\xfe\n", f"{ALEX} laptop\n".encode("utf-16")])
def test_what_is_no_utf8_is_an_error(reading, content):
    with pytest.raises(AuthorizedDevicesError, match="cannot be read"):
        reading(content)


def test_a_path_that_no_file_can_have_is_an_error(tmp_path):
    with pytest.raises(AuthorizedDevicesError, match="cannot be read"):
        read(tmp_path / "a\0b")


def test_a_file_that_has_no_end_is_not_read(listed, reading):
    line = f"{ALEX} laptop\n"
    filling = "#" * (MAX_BYTES - len(line) - 1)
    assert admits(reading(f"{filling}\n{line}"))
    with pytest.raises(AuthorizedDevicesError, match="has more than"):
        reading(f"#{filling}\n{line}")
    os.truncate(listed, 2**40)  # a hole: it costs no disk, and reading it would cost all memory
    with pytest.raises(AuthorizedDevicesError, match="has more than"):
        read(listed)


def test_what_is_no_file_holds_nobody_up(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    for path, says in ((pipe, "is no file"), (tmp_path, "Is a directory")):
        with pytest.raises(AuthorizedDevicesError, match=says):
            read(path)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_admits_nobody(reading, listed, mode):
    assert admits(reading(f"{ALEX} laptop\n"))
    listed.chmod(mode)
    with pytest.raises(AuthorizedDevicesError, match="another account may write it"):
        read(listed)


def owned_by_another(path, monkeypatch):
    if os.geteuid() == 0:
        os.chown(path, NOBODY, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY)


def test_a_file_of_another_account_admits_nobody(reading, listed, monkeypatch):
    reading(f"{ALEX} laptop\n")
    owned_by_another(listed, monkeypatch)
    with pytest.raises(AuthorizedDevicesError, match="another account may write it"):
        read(listed)


def test_a_folder_in_which_others_may_put_another_file_admits_nobody(reading, listed):
    reading(f"{ALEX} laptop\n")
    listed.parent.chmod(0o777)
    with pytest.raises(AuthorizedDevicesError, match="may write the folder"):
        read(listed)
    listed.parent.chmod(0o1777)
    assert admits(read(listed))


def test_a_folder_above_in_which_others_may_put_another_one_admits_nobody(tmp_path):
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(0o700, parents=True)
    listed = inner / "authorized_devices"
    listed.touch(0o600)
    listed.write_text(f"{ALEX} laptop\n")
    assert admits(read(listed))
    inner.parent.chmod(0o770)
    with pytest.raises(AuthorizedDevicesError, match=r"may write the folder .*/outer$"):
        read(listed)


def test_behind_a_link_counts_what_is_read(reading, listed, tmp_path):
    reading(f"{ALEX} laptop\n")
    (tmp_path / "safe").mkdir(0o700)
    link = tmp_path / "safe" / "link"
    link.symlink_to(listed)
    assert admits(read(link))
    listed.parent.chmod(0o777)
    with pytest.raises(AuthorizedDevicesError, match="may write the folder"):
        read(link)
    listed.parent.chmod(0o700)
    listed.chmod(0o666)
    with pytest.raises(AuthorizedDevicesError, match="another account may write it"):
        read(link)
    listed.unlink()
    with pytest.raises(AuthorizedDevicesError, match="cannot be read"):
        read(link)
