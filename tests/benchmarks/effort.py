"""How much a bench does."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """How much a bench does.

    Attributes:
        seconds: How long a measure that repeats itself goes on; ``rounds`` how often it does so at least.
        runs_per_round: Runs from whose time a rate is taken, ``in_flight`` of them at the same time.
        journal_rows: Rows from whose time a rate is taken.
        rows: Ledger rows of the large table, ``few_rows`` of the one it is compared with.
        pages: How many are read at least.
        readers: Of one run's stream; ``streamed_runs`` how many runs are followed at once.
        open_runs: Runs that are open while others are cancelled; ``cancels`` how many are.
        idle_runs: Runs whose memory is weighed.
        rest_seconds: How long the server is watched at rest.
        settle_seconds: How long everything may come to rest before that.
        heartbeat_seconds: Heartbeat timeout of the runs whose worker is killed.
        kills: How many workers are killed.
    """

    seconds: float = 20.0
    rounds: int = 3
    # Long enough for its ends, where fewer than in_flight are at work, to weigh little.
    runs_per_round: int = 100
    in_flight: int = 20
    journal_rows: int = 6_400
    rows: int = 1_000_000
    few_rows: int = 100_000
    pages: int = 200
    readers: int = 200
    streamed_runs: int = 100
    open_runs: int = 500
    cancels: int = 50
    idle_runs: int = 300
    rest_seconds: float = 10.0
    settle_seconds: float = 3.0
    heartbeat_seconds: float = 5.0
    kills: int = 3


# To see that everything works. The figures mean nothing.
QUICK = Effort(
    seconds=0.3,
    rounds=1,
    runs_per_round=4,
    in_flight=4,
    journal_rows=640,
    rows=2_000,
    few_rows=1_000,
    pages=20,
    readers=5,
    streamed_runs=5,
    open_runs=4,
    cancels=2,
    idle_runs=4,
    rest_seconds=0.2,
    settle_seconds=0.2,
    heartbeat_seconds=1.0,
    kills=1,
)
