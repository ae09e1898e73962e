"""Guards the steps of a study: in their order, put off where they may wait, told as they are."""

import pytest

from equipoise.problems import InputError, refused
from equipoise_studies.config import Step, carry_out, duration, told
from equipoise_studies.costs import Work


def test_steps_that_may_wait_are_put_off_and_the_others_carried_out() -> None:
    ran: list[str] = []
    said: list[str] = []
    steps = [
        Step("first", "files", 1, 0, lambda: ran.append("first")),
        Step("done", "files", 2, 2, lambda: ran.append("done")),
        Step("run", "runs", 1, 0, lambda: ran.append("run"), None, ("a.trec",), may_wait=True),
        Step("last", "records", 1, 0, lambda: ran.append("last")),
    ]
    assert [step.name for step in carry_out(steps, said.append)] == ["run"]
    assert ran == ["first", "last"]
    assert said[0] == "Step 1 of 2. first: 0 of 1 files recorded"
    assert said[-2:] == ["Left out: run", "    wanted first: a.trec"]


@pytest.mark.parametrize("may_wait", [False, True])
def test_nothing_is_begun_where_a_step_cannot_wait_or_all_would(may_wait: bool) -> None:
    ran: list[str] = []
    lacking = Step("b", "runs", 1, 0, lambda: ran.append("b"), None, ("b.trec",), may_wait)
    others = [] if may_wait else [Step("a", "files", 1, 0, lambda: ran.append("a"))]
    with pytest.raises(InputError, match=r"b.trec"):
        carry_out([*others, lacking], lambda _: None)
    assert not ran


@pytest.mark.parametrize("is_first", [True, False])
def test_an_input_error_of_a_step_does_not_say_that_nothing_was_written(is_first: bool) -> None:
    """Of the first neither, which may have written what people are asked, and then wants them."""

    def refuse() -> None:
        raise refused("x.trec", "two columns", "six")

    good = Step("good", "files", 1, 0, lambda: None)
    bad = Step("bad", "runs", 1, 0, refuse)
    steps = [bad, good] if is_first else [good, bad]
    with pytest.raises(ValueError, match="what was recorded before is kept") as caught:
        carry_out(steps, lambda _: None)
    assert not isinstance(caught.value, InputError)
    assert "x.trec: found two columns" in str(caught.value)


def test_a_plan_says_what_is_left_how_long_it_takes_and_what_to_know() -> None:
    steps = [
        Step("texts", "documents", 8_841_823, 0, lambda: None, 0.006),
        Step("answers", "answers", None, 3, lambda: None, 2.0, notes=("it costs 9 USD",)),
        Step("run", "runs", 1, 0, lambda: None, None, ("a.trec",), may_wait=True),
    ]
    assert told(steps).splitlines() == [
        "texts: 0 of 8,841,823 documents recorded; the rest takes about 14.7 h",
        "answers: 3 of an unknown number of answers recorded; about 33 min for 1,000",
        "    it costs 9 USD",
        "run: 0 of 1 runs recorded",
        "    wanted, or it is left out: a.trec",
        "All that is known together: about 14.7 h.",
    ]
    reading = Work(read=3e9, weights=1e8)  # a third of the time that learning from it takes
    learning = Work(learned=3e9, weights=1e8)
    steps = [
        Step("checkpoint", "models", 1, 0, lambda: None, lacks=("x",), state="at hand"),
        Step("a", "models", 1, 0, lambda: None, work=reading),
        Step("b", "models", 1, 0, lambda: None, work=learning),
        Step("c", "models", 1, 1, lambda: None, work=learning),
    ]
    assert told(steps).splitlines() == [
        "checkpoint: 0 of 1 models at hand",
        "    wanted first: x",
        "a: 0 of 1 models recorded",
        "    about 11 h on an RTX 3090, or 58 days on two cores",
        "b: 0 of 1 models recorded",
        "    about 33 h on an RTX 3090, or 174 days on two cores",
        "c: 1 of 1 models recorded",
        "All models together: about 44 h on an RTX 3090, or 231 days on two cores, "
        "computed from their sizes and the tokens.",
    ]
    assert duration(89) == "89 s"
