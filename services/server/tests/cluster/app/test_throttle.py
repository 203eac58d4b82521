from bothy_server.cluster.app.throttle import Throttle


def test_lets_the_first_through_and_counts_the_minute_from_there():
    throttle = Throttle(2)
    assert [throttle.admits(at) for at in (7, 8, 9, 66.9, 67, 68, 69)] == [True, True, False, False, True, True, False]
