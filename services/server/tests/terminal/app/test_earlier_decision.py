from bothy_kit.manual_clock import ManualClock
from bothy_server.terminal.app.earlier_decision import EarlierDecision


class News:
    last_current_at = None


def test_an_earlier_decision_holds_for_its_time_after_the_last_news():
    clock, news = ManualClock(), News()
    earlier = EarlierDecision(news, clock, 600)
    assert not earlier.holds  # nothing was ever heard
    news.last_current_at = clock.monotonic()
    assert earlier.holds
    clock.advance(600)
    assert earlier.holds
    clock.advance(0.001)
    assert not earlier.holds
    news.last_current_at = clock.monotonic()
    assert earlier.holds
