from bothy_server.terminal.adapters.sockets.liveness import Liveness, Verdict


class Judged:
    """A liveness with windows of 20, 20 and 120 s, judged every second."""

    def __init__(self) -> None:
        self.liveness = Liveness(ping_interval=20, ping_timeout=20, stall_timeout=120)
        self.now = 500.0

    def seconds(self, count: int, *, reading=True, ping_waits=False, stuck_bytes=None) -> list[tuple[int, Verdict]]:
        """The verdicts that ask for something, with the second they came in."""
        verdicts = []
        for second in range(1, count + 1):
            self.now += 1
            verdict = self.liveness.judge(self.now, reading=reading, ping_waits=ping_waits, stuck_bytes=stuck_bytes)
            if verdict is not Verdict.NOTHING:
                verdicts.append((second, verdict))
        return verdicts


def test_silence_is_asked_and_then_given_up():
    judged = Judged()
    judged.seconds(1)
    assert judged.seconds(45)[:2] == [(20, Verdict.PING), (40, Verdict.LOST)]


def test_any_byte_counts_as_life():
    judged = Judged()
    judged.seconds(1)
    assert judged.seconds(39) == [(20, Verdict.PING)]
    judged.liveness.heard = True
    assert judged.seconds(40) == [(1, Verdict.PING), (21, Verdict.PING)]
    assert judged.seconds(1) == [(1, Verdict.LOST)]


def test_a_peer_that_is_heard_all_the_time_is_pinged_all_the_same():
    """It may hear nothing else: what it sends is long, its way slow, and whoever gets it has nothing to say."""
    judged = Judged()
    pinged = []
    for second in range(100):
        judged.liveness.heard = True
        pinged += [(second, verdict) for _, verdict in judged.seconds(1)]
    assert pinged == [(second, Verdict.PING) for second in (20, 40, 60, 80)]


def test_a_peer_that_is_not_read_is_not_silent():
    judged = Judged()
    judged.seconds(1)
    assert {verdict for _, verdict in judged.seconds(100, reading=False)} == {Verdict.PING}
    assert judged.seconds(39)[-1] == (20, Verdict.PING)
    assert judged.seconds(1) == [(1, Verdict.LOST)]


def test_a_ping_that_could_not_be_written_is_not_held_against_the_peer():
    judged = Judged()
    judged.seconds(1)
    assert judged.seconds(20) == [(20, Verdict.PING)]
    assert judged.seconds(100, ping_waits=True) == []
    assert judged.seconds(20) == [(20, Verdict.LOST)]


def test_a_stall_is_told_once_and_again_after_progress():
    judged = Judged()
    judged.seconds(1, stuck_bytes=900)
    assert judged.seconds(300, stuck_bytes=900) == [(120, Verdict.STALLED)]
    judged.seconds(1, stuck_bytes=899)
    assert judged.seconds(300, stuck_bytes=899) == [(120, Verdict.STALLED)]


def test_a_slow_reader_is_not_stalled_whatever_is_queued_when_it_is_judged():
    judged = Judged()
    for queued in (500, 600, 700, 600, 650):
        assert judged.seconds(100, stuck_bytes=queued) == []
        judged.liveness.took = True


def test_a_stalled_peer_is_not_called_silent():
    judged = Judged()
    judged.seconds(1)
    assert judged.seconds(119, stuck_bytes=900) == []
    assert judged.seconds(20) == [(1, Verdict.PING)]
