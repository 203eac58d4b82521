"""The host service of bothy: keeps a machine reachable through the relay and runs its sessions.

Read it from the outside in: ``cli`` and ``service`` (what runs), ``control`` and ``sessions`` (what the relay asks for),
``session`` (one terminal), and below it ``data``, ``gate``, ``pty`` and the pure rules ``redial``, ``lifetime``, ``ring``
and ``repaint``.
"""
