"""HTML for widgets: text stays text, however hostile or long, and numbers are those of the record."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopkit import MaxIterations, Threshold
from loopkit.store import Run
from loopkit.views import fragments
from loopkit.views.doors import Door
from loopkit.views.trace import Piece, Trace


class Page(HTMLParser):
    """The tags of a page, its attributes, and its text outside of styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text, self._style = [], [], "", False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._style = tag == "style"

    def handle_endtag(self, tag):
        self._style = False

    def handle_data(self, data):
        self.text += "" if self._style else data


@settings(max_examples=100, deadline=None)
@given(st.text(), st.integers(1, 40))
def test_text_says_the_very_same_and_what_is_cut_is_told(said, limit):
    shown = Page(fragments.text(said, limit))
    whole = said[:limit].encode("utf-8", "backslashreplace").decode()
    assert shown.text.replace("\r", "\n").startswith(whole.replace("\r", "\n"))
    assert set(shown.tags) == ({"small"} if len(said) > limit else set())
    assert (f"{len(said) - limit:,} more characters" in shown.text) == (len(said) > limit)


def test_all_that_a_turn_says_is_shown_and_nothing_of_it_is_markup(drafts, recorded):
    trace = Trace(recorded(drafts(0.2, None, 0.5, 0.9)))
    pages = [Page(fragments.page(fragments.turn_html(trace.turn(number)))) for number in (1, 2, 3, 4)]
    for shown in pages:
        assert not {"script", "i", "img"} & set(shown.tags) and shown.tags.count("b") <= 1
        assert not [name for name, _ in shown.attributes if name.startswith("on")]
        assert "<script>alert(1)</script>" in shown.text
    first, crash, better, _ = (shown.text for shown in pages)
    assert "iteration 1: keep, score 0.2" in first and "difference" not in first
    assert "☐ blocking say more" in first and "☐ suggested be brief" in first and "12 words" in first
    assert "iteration 2: crash" in crash and "propose failed, malformed" in crash
    assert "the best before (iteration 1)" in better and "☑ settled say more" in better
    assert "15 tokens in 1 call, $0.2500" in better and "4 events" in better
    assert "ins" in pages[2].tags and "del" in pages[2].tags


def test_a_difference_shows_what_is_new_and_gone_and_only_the_ends_of_what_stayed():
    shown = Page(
        fragments.difference_html([Piece("same", "x" * 1000), Piece("gone", "<i>"), Piece("new", "y")])
    )
    assert shown.tags == ["pre", "small", "del", "ins"] and "700 characters the same" in shown.text
    assert shown.text.count("x") == 300 and "<i>" in shown.text
    assert Page(fragments.difference_html([Piece("same", "x")])).text == "none"


def test_the_facts_of_a_run(drafts, recorded, store, cut):
    run = recorded(drafts(0.2, 0.9), model="simulated:random")
    said = Page(fragments.facts_html(run)).text
    for fact in ("finished", "random (simulated)", "Threshold: score 0.9", "30 tokens in 2 calls, $0.5000"):
        assert fact in said
    store.fork("r", "other", at=1).close()
    assert "r, after iteration 1" in Page(fragments.facts_html(store.run("other"))).text
    assert "unfinished" in Page(fragments.facts_html(Run("empty", []))).text


def test_a_cost_that_nobody_knows_is_a_lower_bound():
    turn = {"event": "iteration", "iteration": 1, "usage": {"calls": 2, "cost": 1.0, "unpriced_calls": 1}}
    said = Page(fragments.facts_html(Run("r", [turn]))).text
    assert "at least $1.0000 (1 calls have no known price)" in said


def test_a_log_is_listed_from_the_iteration_on_and_its_place_is_told(drafts, recorded, store):
    run = recorded(drafts(0.2, 0.9))
    said = Page(fragments.log_html(run, 2)).text
    assert str(store.path("r")) in said and "from line 7" in said
    assert "'iteration': 2" in said and "'iteration': 1" not in said
    long = Run("r", [{"event": "note", "n": n} for n in range(fragments.EVENTS + 5)])
    assert "5 more follow." in Page(fragments.log_html(long, 1)).text


@pytest.mark.parametrize(("done", "most", "said"), [(3, 20, "turn 3 of at most 20"), (3, None, "turn 3")])
def test_progress_has_an_end_only_where_there_is_one(done, most, said):
    shown = Page(fragments.progress_html(done, most))
    assert shown.text.strip() == said and (("max", "20") in shown.attributes) == (most is not None)


def test_doors_have_a_gauge_where_there_is_telling():
    doors = [
        Door(gate=repr(Threshold(0.8)), nearness=0.5, reason=None),
        Door(gate=repr(MaxIterations(3)), nearness=1.0, reason="3 of 3 <iterations> used"),
        Door(gate="<lambda>", nearness=None, reason=None),
    ]
    shown = Page(fragments.doors_html(doors))
    assert [value for name, value in shown.attributes if name == "value"] == ["0.500", "1.000"]
    assert "50% of the way" in shown.text and "open: 3 of 3 <iterations> used" in shown.text
    assert "<lambda>closed" in shown.text


def test_a_table_shows_numbers_as_people_read_them():
    rows = [{"a": 1234, "b": 0.123456, "c": None}, {"a": True, "b": 1234.5, "c": "<i>"}]
    said = Page(fragments.table_html(("a", "b", "c"), rows)).text
    assert said == "abc1,2340.123–True1,234<i>"
