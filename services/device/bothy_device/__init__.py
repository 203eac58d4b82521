"""The device program ``bothy``: a terminal on a host that nobody can reach from outside.

``session.py`` decides, ``terminal.py`` obeys; ``screen.py`` is the person's terminal and ``stream.py`` the socket. What a
person may type, set and read is described in ``docs/operations/bothy.md``.
"""
