"""Run a command that dies with its parent: ``python -I -S tether.py PARENT SIGNAL UID GID COMMAND...``.

Started by :mod:`bothy_kit.processes`, never imported. It becomes the command (exec), so the command is a direct child of
the caller. It drops root itself, because the other account may not be able to reach this interpreter. The kernel
forgets the death signal when the account changes, hence the order.
"""

import ctypes
import fcntl
import os
import sys
import termios

PR_SET_PDEATHSIG = 1


def main(parent: int, signal: int, uid: int, gid: int, command: list[str]) -> None:
    """Replace this process; ids of -1 keep the account."""
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # it died before the signal was set
        raise SystemExit("the parent has gone")
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
