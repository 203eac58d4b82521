"""Whether a proven identity fits the row of the session that it came for."""

from uuid import UUID

import pytest

from bothy_server.terminal.domain.admission import DeviceIdentity, HostIdentity

HOST, DEVICE, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)


@pytest.mark.parametrize(
    ("identity", "fits"),
    [
        (DeviceIdentity(DEVICE, 5, b"k" * 32), True),
        (DeviceIdentity(DEVICE, 4, b"k" * 32), True),
        # It held the session before: it is let in as far as being told that it was replaced.
        (DeviceIdentity(OTHER, 4, b"k" * 32), True),
        (DeviceIdentity(OTHER, 5, b"k" * 32), False),
        (DeviceIdentity(OTHER, 6, b"k" * 32), False),
        (HostIdentity(HOST, b"k" * 32, 1), True),
        (HostIdentity(OTHER, b"k" * 32, 1), False),
        (HostIdentity(DEVICE, b"k" * 32, 1), False),
    ],
)
def test_which_identity_fits(identity, fits):
    assert identity.fits(HOST, DEVICE, 5) is fits
