"""How far it is: what is watched, how fast it goes, and the lines that tell it at a terminal."""

import asyncio
import logging
from collections import Counter
from io import StringIO
from pathlib import Path

import dagster as dg
import pytest
from rich.cells import cell_len
from rich.console import Console, Group

from eval_pipeline.cli.progress import (
    clock,
    dollars,
    following,
    frame,
    how_fast,
    percent,
    shortened,
)
from eval_pipeline.defs.metadata import StageProgressList
from eval_pipeline.defs.resources import WarehouseResource, build_resources
from eval_pipeline.evaluation.progress import (
    Follower,
    Pace,
    Stage,
    Standing,
    State,
    Watch,
    left_s,
    state_of,
    under_way,
    watching,
)
from eval_pipeline.evaluation.workers import StageProgress
from eval_pipeline.journal import SIGHTINGS
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.settings.sections import Budget
from eval_pipeline.suites.benchmark import keep
from eval_pipeline_tests.builders import NOON, a_benchmark, a_model, settings_in

ESCAPE = "\x1b"
SCREEN = 24
LONG = "vendor/a-model-with-a-name-that-nobody-can-remember-preview-2026-01-01:provider"


def a_tally(model: str = "lab/m", planned: int = 140, **outcomes: int) -> StageProgress:
    counted = Counter({Outcome(outcome): count for outcome, count in outcomes.items()})
    return StageProgress(model, "asked", planned=planned, outcomes=counted)


def lines_of(stage: Stage, width: int, height: int | None = SCREEN) -> list[str]:
    return plain(shown(stage, width, height)).split("\n")


def plain(group: Group) -> str:
    """What a terminal without colours shows of it."""
    console = Console(width=500, file=StringIO(), record=True, color_system=None, markup=False)
    console.print(group)
    lines = console.export_text().splitlines()
    return "\n".join(line.rstrip() for line in lines)


def shown(stage: Stage, width: int, height: int | None = SCREEN, *, later_s: float = 0) -> Group:
    """What is seen of it, and had been seen some seconds before with nothing done."""
    follower = Follower(Watch([stage]), began=0.0)
    if later_s:
        outcomes = [tally.outcomes for tally in stage.tallies]
        for tally in stage.tallies:
            tally.outcomes = Counter()
        follower.look(0.0)
        for tally, counted in zip(stage.tallies, outcomes, strict=True):
            tally.outcomes = counted
    return frame(follower.look(later_s), width, height)


def test_whoever_launches_sees_each_stage_and_that_it_is_over() -> None:
    asking, judging = Stage([a_tally()]), Stage([])

    with watching() as watch:
        with under_way(lambda: asking):
            assert watch.stage is asking
            assert not asking.over
        with pytest.raises(KeyboardInterrupt), under_way(lambda: judging):
            raise KeyboardInterrupt

    assert watch.stages == [asking, judging]
    assert asking.over
    assert judging.over


def test_where_nobody_watches_a_stage_is_not_even_described() -> None:
    with watching():
        pass

    with under_way(lambda: pytest.fail("nobody watches")):
        done = True

    assert done


def test_a_board_is_seen_from_outside_of_dagster(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, budget={"usd_per_run": 5})
    warehouse = build_resources(settings)["warehouse"]
    assert isinstance(warehouse, WarehouseResource)
    keep(a_benchmark(), warehouse.journal)
    model = a_model("demo/strong", simulated=True)
    seen = Sighting(model=model, selected=True, seen_at=NOON)
    warehouse.journal.write_whole(SIGHTINGS, "noon", records=[seen])
    while_at_work: list[Standing] = []

    @dg.asset
    def judged(context: dg.AssetExecutionContext) -> None:
        board = StageProgressList(context)

        async def work() -> list[StageProgress]:
            board.append(a_tally("demo/strong", 2, ok=1))
            while_at_work.extend(Follower(watch, 0.0).look(1.0).standings)
            return board

        assert board.run(work(), settings, warehouse, judges=["demo/judge"]) is board

    with watching() as watch:
        dg.materialize([judged])

    (stage,) = watch.stages
    assert stage.over
    assert (list(stage.judges), stage.budget.usd_per_run) == (["demo/judge"], 5)
    (standing,) = while_at_work
    assert (standing.state, standing.done, standing.simulated) == (State.WORKING, 1, True)


@pytest.mark.parametrize(
    ("tally", "over", "state"),
    [
        (a_tally(planned=0), False, State.WAITING),
        (a_tally(planned=0), True, State.UNTOUCHED),
        (a_tally(planned=2), False, State.WORKING),
        (a_tally(planned=2, ok=1), False, State.WORKING),
        (a_tally(planned=2, ok=1, timeout=1), False, State.DONE),
        (a_tally(planned=2, ok=2), True, State.DONE),
        (a_tally(planned=2, ok=1), True, State.CUT_SHORT),
        (StageProgress("lab/m", "asked", planned=2, stopped="why"), False, State.STOPPED),
        (StageProgress("lab/m", "asked", stopped="why"), True, State.STOPPED),
    ],
)
def test_a_tally_tells_what_is_being_done_about_its_model(
    tally: StageProgress, over: bool, state: State
) -> None:
    assert state_of(tally, over=over) is state


@pytest.mark.parametrize(
    ("counted", "now", "rate"),
    [
        ([], 5, None),
        ([(0, 0)], 5, None),
        ([(0, 0)], 0, None),
        ([(0, 0), (10, 20)], 10, 2.0),
        # What there was before counts for nothing.
        ([(0, 100), (10, 120)], 10, 2.0),
        # A slow start is forgotten, and so is a fast one.
        ([(t, 0) for t in range(100)] + [(100 + t, 4 * t) for t in range(41)], 140, 4.0),
        ([(t, 90 * t) for t in range(10)] + [(10 + t, 810 + t) for t in range(61)], 70, 1.0),
        # Nothing comes any more: it is ever slower, and not the same for ever.
        ([(t, t) for t in range(61)], 90, 0.5),
        # Rare answers: one every 20 seconds, of which some must be in sight.
        ([(20 * n, n) for n in range(31)], 600, 0.05),
        ([(20 * n, n) for n in range(31)], 619, 6 / 119 * (119 / 139)),
    ],
)
def test_the_rate_is_that_of_the_last_half_minute(
    counted: list[tuple[float, int]], now: float, rate: float | None
) -> None:
    pace = Pace()
    for moment, done in counted:
        pace.note(moment, done)

    found = pace.rate(now, counted[-1][1] if counted else 0)

    assert found == (None if rate is None else pytest.approx(rate, rel=0.2))


@pytest.mark.parametrize(
    ("left", "rate", "seconds"), [(100, 2.0, 50), (0, 2.0, 0), (100, None, None), (100, 0.0, None)]
)
def test_what_is_left_takes_as_long_as_the_rate_says(
    left: int, rate: float | None, seconds: float | None
) -> None:
    assert left_s(left, rate) == seconds


def test_the_time_that_a_model_waits_is_not_part_of_its_pace() -> None:
    tally = a_tally(planned=0)
    follower = Follower(Watch([Stage([tally])]), began=0.0)
    follower.look(0.0)

    tally.planned = 100
    follower.look(1000.0)
    tally.outcomes[Outcome.OK] = 20
    (standing,) = follower.look(1010.0).standings

    assert (standing.rate, standing.left_s) == (2.0, 40.0)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (clock(0), "0:00"),
        (clock(59.6), "1:00"),
        (clock(3599), "59:59"),
        (clock(3661), "1:01:01"),
        (clock(90_000), "1 d 1 h"),
        (how_fast(0.05), "3.0/min"),
        (how_fast(0.44), "0.4/s"),
        (how_fast(9.96), "10/s"),
        (how_fast(123.4), "123/s"),
        (dollars(0), "$0.00"),
        (dollars(0.0004), "<$0.001"),
        (dollars(0.0421), "$0.042"),
        (dollars(1.234), "$1.23"),
        (dollars(1234.5), "$1234"),
        (percent(139, 140), "99%"),
        (percent(0, 0), ""),
        (shortened("lab/model", 9), "lab/model"),
        (shortened("lab/model-preview", 9), "lab/…view"),
        (shortened("実験/模型-試験版", 9), "実験…験版"),
    ],
)
def test_numbers_and_names_are_short(told: str, text: str) -> None:
    assert told == text


def a_stage() -> Stage:
    working = a_tally(LONG, 140, ok=40, timeout=7, refused=3)
    working.cost_usd, working.estimated_usd = 1.25, 3.5
    stopped = a_tally("lab/stopped", 140, ok=10, auth=1)
    stopped.stop("The key is not accepted.", failed=True)
    others = [a_tally("lab/done", 140, ok=140), a_tally("lab/waits", 0)]
    return Stage([working, stopped, *others], budget=Budget(usd_per_run=20))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 300])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    told = plain(shown(a_stage(), width, later_s=25)).split("\n")

    assert len(told) == 5
    assert max(map(cell_len, told)) + len("^C") < width


@pytest.mark.parametrize(
    ("width", "header", "line"),
    [
        (
            60,
            ["asking 4 models", "201/420 47%", "0:45+ left"],
            ["vendo…vider", "━", "50/140", "0:45 left", "$1.25", "10 failed"],
        ),
        (
            80,
            ["asking 4 models", "201/420 47%", "0:45+ left", "0:25", "$1.25"],
            ["vendor", "provider", "━━━", "50/140", "0:45 left", "$1.25", "7 tim"],
        ),
        (
            120,
            ["201/420 47%", "0:45+ left", "0:25", "$1.25 of about $3.50", "budget $20.00 per run"],
            ["━━━━", "50/140", "35%", "0:45 left", "$1.25  of $3.50", "2.0/s", "7 time"],
        ),
    ],
)
def test_what_matters_most_has_room_in_a_narrow_terminal(
    width: int, header: list[str], line: list[str]
) -> None:
    first, working, *_ = plain(shown(a_stage(), width, later_s=25)).split("\n")

    for part in header:
        assert part in first
    for part in line:
        assert part in working


@pytest.mark.parametrize("width", [60, 80, 120])
def test_who_stopped_says_why_and_who_waits_or_is_done_says_so(width: int) -> None:
    _, _, done, stopped, waits = lines_of(a_stage(), width)

    assert "stopped: The key is not acc" in stopped
    assert ("11/140, 1 auth" in stopped) == (width >= 80)
    assert "140/140" in done
    assert "done" in done
    assert waits.endswith("waiting")


def test_failures_on_the_way_are_red_and_the_model_s_own_are_yellow() -> None:
    console = Console(width=140, color_system="standard", force_terminal=True)

    segments = console.render(shown(a_stage(), 140))

    styles = {one.text: str(one.style) for one in segments}
    assert styles["7 timeout"] == "red"
    assert styles["3 refused"] == "yellow"


def test_of_many_models_those_at_work_are_shown_first_and_the_others_are_counted() -> None:
    done = [a_tally(f"lab/done{n}", 10, ok=10) for n in range(40)]
    waiting = [a_tally(f"lab/waits{n}", 0) for n in range(50)]
    working = [a_tally(f"lab/works{n}", 10, ok=3) for n in range(10)]

    header, *models, last = lines_of(Stage([*done, *waiting, *working]), 80)

    assert header.startswith("asking 100 models")
    assert [line.split()[0] for line in models[:10]] == [tally.model for tally in working]
    assert all("waiting" in line for line in models[10:])
    assert last == f"… and {100 - len(models)} more ({60 - len(models)} waiting, 40 done)"
    assert len(models) + 2 <= SCREEN - 3


def test_models_without_bars_are_below_those_with_one() -> None:
    tallies = [a_tally("lab/done", 1, ok=1), a_tally("lab/waits", 0), a_tally("lab/works", 2, ok=1)]

    _, *models = lines_of(Stage(tallies), 80)

    assert [line.split()[0] for line in models] == ["lab/done", "lab/works", "lab/waits"]


def test_a_screen_of_few_lines_still_shows_somebody_at_work() -> None:
    tallies = [a_tally(f"lab/m{n}", 10, ok=n) for n in range(9)]

    told = lines_of(Stage(tallies), 80, height=3)

    assert [line.split()[0] for line in told] == ["asking", "lab/m0", "…"]


@pytest.mark.parametrize(
    ("simulated", "judges", "header", "names"),
    [
        ({"demo/a", "demo/b"}, [], "judging 2 models, simulated", ["demo/a", "demo/b"]),
        ({"demo/a"}, [], "judging 2 models (* simulated)", ["demo/a*", "demo/b"]),
        (set(), ["lab/judge"], "judging 2 models by lab/judge", ["demo/a", "demo/b"]),
        (
            {"demo/a", "demo/b"},
            ["lab/judge"],
            "judging 2 models by lab/judge (* simulated)",
            ["demo/a*", "demo/b*"],
        ),
    ],
)
def test_simulated_models_are_called_so_once(
    simulated: set[str], judges: list[str], header: str, names: list[str]
) -> None:
    tallies = [StageProgress(name, "judged", planned=3) for name in ("demo/a", "demo/b")]

    first, *models = lines_of(Stage(tallies, judges, simulated=simulated), 100)

    assert first.split(" · ")[0] == header
    assert [line.split()[0] for line in models] == names


def test_somebody_else_s_words_can_do_nothing_to_the_screen() -> None:
    said = "[red]no[/red]\x1b[2J\x07\n\n\u202eevil \u2028x"
    stopped = a_tally(f"lab/{said}", 5, ok=1)
    stopped.stop(said, failed=True)
    stage = Stage([stopped], judges=[said])

    told = plain(shown(stage, 140))

    assert len(told.split("\n")) == 2
    assert "".join(told.split("\n")).isprintable()
    assert "[red]no[/red]" in told


def test_before_between_and_after_the_stages_there_is_a_line_too() -> None:
    follower = Follower(watch := Watch(), began=0.0)
    before = plain(frame(follower.look(2.0), 80, SCREEN))
    tally = a_tally(planned=1, ok=1)
    tally.cost_usd = 0.5
    watch.stages.append(Stage([tally], over=True))

    after = plain(frame(follower.look(65.0), 80, SCREEN))

    assert before == "preparing · 0:02"
    assert after == "computing · 1:05 · $0.50 in all"


def test_a_stage_that_was_cut_short_says_how_far_it_came() -> None:
    stage = Stage([a_tally("lab/a", 10, ok=4), a_tally("lab/b", 0)], over=True)

    header, first, second = lines_of(stage, 80, height=None)

    assert header.startswith("stopped asking 2 models · 4/10 40%")
    assert "cut short" in first
    assert second.endswith("nothing done")


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "1"}])
def test_without_a_terminal_there_are_plain_lines_and_no_bars(
    variables: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    log = logging.getLogger("eval_pipeline.evaluation.workers")

    with following(), under_way(lambda: Stage([a_tally()])):
        log.info("progress %s", "model=lab/m done=3")
        log.warning("%s: [red]oh[/red] \x1b[2J", "lab/m")
    log.warning("not followed any more")

    told = capsys.readouterr()
    assert told.err == "progress model=lab/m done=3\nlab/m: [red]oh[/red] \ufffd[2J\n"
    assert told.out == ""


def test_tallies_may_be_counted_while_they_are_looked_at() -> None:
    tallies = [a_tally(f"lab/m{n}", 10_000) for n in range(20)]
    follower = Follower(Watch([Stage(tallies)]), began=0.0)

    def count() -> None:
        for turn in range(500):
            for tally in tallies:
                tally.outcomes[list(Outcome)[turn % len(Outcome)]] += 1

    async def both() -> int:
        counting, looks = asyncio.create_task(asyncio.to_thread(count)), 0
        while not counting.done():
            frame(follower.look(float(looks)), 80, SCREEN)
            looks += 1
            await asyncio.sleep(0)
        await counting
        return looks

    assert asyncio.run(both()) > 1
    assert all(one.done == 500 for one in follower.look(1e6).standings)
