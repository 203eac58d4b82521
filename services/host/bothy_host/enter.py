"""Runs between fork and the program of a session: takes the terminal, becomes the account, starts the program.

Started as a file by ``python -I -S`` in its own process session, so that no code of ours runs between fork and exec in the
service, where threads make that unsafe. It is the only place that ever changes user, and the program begins behind it.

Arguments: a descriptor for one line about a failure (closed by a successful exec), ``uid:gid:group,group`` or nothing to
stay, the folder or nothing for ``HOME``, the program's path, its whole argument list. The environment is the program's.
"""

import contextlib
import fcntl
import os
import signal
import sys
import termios


def _enter(account: str, folder: str, path: str, argv: list[str]) -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if account:
        uid, gid, groups = account.split(":")
        os.fchown(0, int(uid), -1)
        os.fchmod(0, 0o600)
        os.setgroups([int(group) for group in groups.split(",")])
        os.setgid(int(gid))
        os.setuid(int(uid))
    for number in signal.valid_signals():
        # What the service ignores is its own business. KILL and STOP cannot be set.
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)
    if folder:
        os.chdir(folder)
    else:
        try:
            os.chdir(os.environ["HOME"])
        except OSError:
            os.chdir("/")
    os.execv(path, argv)  # noqa: S606 - the program that the operator configured


if __name__ == "__main__":
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
    try:
        _enter(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
    except OSError as error:
        os.write(report, f"{error.filename or sys.argv[4]}: {error.strerror}".encode())
        os._exit(126)
