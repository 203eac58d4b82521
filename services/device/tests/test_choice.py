import msgspec
import pytest

from bothy_device.choice import choose_login, find_host, find_session
from bothy_device.failure import Failure
from bothy_device.rest import Host, SessionRow


def host(number=1, name="lab-1", profiles=None, session_users=()):
    row = {
        "host_id": f"0190a1b2-0000-7000-8000-00000000000{number}",
        "name": name,
        "state": "active",
        "disabled_reason": None,
        "presence": "online",
        "profiles": {"shell": ["alex"]} if profiles is None else profiles,
        "channel_key": None,
        "fingerprint": None,
        "owner": not session_users,
        "session_users": list(session_users),
        "last_seen_at": None,
    }
    return msgspec.convert(row, Host)


def session(number, **other):
    names = [each for each in SessionRow.__struct_fields__ if not each.endswith("_id")]
    ids = {
        "session_id": f"0190a1b2-000{number}-7000-8000-000000000001",
        "host_id": str(host().host_id),
        "person_id": str(host().host_id),
        "device_id": str(host().host_id),
    }
    return msgspec.convert(ids | dict.fromkeys(names, "x") | other, SessionRow)


def test_a_host_by_name_and_by_id():
    hosts = [host(1), host(2, "lab-2")]
    assert find_host(hosts, "lab-2") is hosts[1]
    assert find_host(hosts, str(hosts[0].host_id)) is hosts[0]


def test_a_name_is_that_of_the_host_that_is_not_retired():
    hosts = [msgspec.structs.replace(host(1), state="retired"), host(2)]
    assert find_host(hosts, "lab-1") is hosts[1]
    assert find_host(hosts[:1], "lab-1") is hosts[0]


def test_no_host_lists_those_there_are():
    with pytest.raises(Failure, match="no host 'lab-9'; you may see: lab-1"):
        find_host([host()], "lab-9")
    with pytest.raises(Failure, match="a right on none yet"):
        find_host([], "lab-9")


def test_an_ambiguous_name_lists_the_ids():
    hosts = [host(1), host(2)]
    with pytest.raises(Failure, match=f"2 hosts are called 'lab-1', .*{hosts[0].host_id}, {hosts[1].host_id}"):
        find_host(hosts, "lab-1")


def test_the_only_profile_and_user_are_chosen():
    assert choose_login(host(), None, None) == ("shell", "alex")
    assert choose_login(host(profiles={"shell": ["alex", "sam"]}, session_users=["sam", "robin"]), None, None) == (
        "shell",
        "sam",
    )


def test_a_group_stands_for_the_users_of_the_right():
    wide = {"shell": ["@staff"]}
    assert choose_login(host(profiles=wide, session_users=["alex"]), None, None) == ("shell", "alex")
    assert choose_login(host(profiles=wide), None, "sam") == ("shell", "sam")
    with pytest.raises(Failure, match="it offers shell: @staff"):
        choose_login(host(profiles=wide), None, None)


def test_several_list_the_choices():
    several = host(profiles={"shell": ["alex", "sam"], "admin": ["root"]})
    with pytest.raises(Failure) as refused:
        choose_login(several, None, None)
    assert refused.value.message == (
        "lab-1 offers several, choose one: --profile shell --user alex, --profile shell --user sam,"
        " --profile admin --user root"
    )
    assert choose_login(several, "admin", None) == ("admin", "root")
    assert choose_login(several, None, "sam") == ("shell", "sam")
    with pytest.raises(Failure, match="choose one"):
        choose_login(several, "shell", None)


def test_what_is_not_offered_is_told():
    with pytest.raises(Failure, match="no profile 'admin'; it has: shell"):
        choose_login(host(), "admin", None)
    with pytest.raises(Failure, match="no right to open a profile on lab-1 as 'root'; it offers shell: alex"):
        choose_login(host(), None, "root")
    with pytest.raises(Failure, match="no right"):
        choose_login(host(session_users=["sam"]), None, None)
    with pytest.raises(Failure, match="has not reported any profile"):
        choose_login(host(profiles={}), None, None)


def test_a_session_by_the_beginning_of_its_id():
    sessions = [session(1), session(2)]
    assert find_session(sessions, "0190A1B2-0002") is sessions[1]
    with pytest.raises(Failure, match="2 sessions begin with '0190'"):
        find_session(sessions, "0190")
    with pytest.raises(Failure, match="no session of yours begins with 'ff'"):
        find_session(sessions, "ff")


def test_a_session_that_ended_is_told_and_hides_no_other():
    sessions = [session(1, state="closed", close_reason="idle"), session(2)]
    assert find_session(sessions, "0190") is sessions[1]
    with pytest.raises(Failure, match=f"session {sessions[0].session_id} has ended: idle"):
        find_session(sessions, "0190a1b2-0001")
