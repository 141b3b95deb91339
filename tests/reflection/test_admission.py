"""Every gate lets the good candidate through and refuses its own kind of bad one, with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.sameness import same_conclusion
from reflection.admission import Admitted, Refused, admit, verbatim_quotes
from reflection.distill.rules import distil
from reflection.forms import Candidate, Quote, TraceForm
from tests.reflection.traces import call, result, say, trace, user

ERROR = "Error: page_size must be at most 100"
FORM = trace(
    user("List all users, please"),
    call("http_get", url="/v1/users", page_size=500),
    result("http_get", ERROR),
    call("http_get", url="/v1/users", page_size=100),
    result("http_get", '{"users": ["ann", "ben"]}'),
    say("“Done”:  there are\n2 users."),
    task="List the users",
)
GOOD = Candidate(
    kind="experience",
    tier="episodic",
    content="Ask http_get for at most 100 rows per page.",
    structure={},
    confidence=0.4,
    quotes=(Quote(2, 0, len(ERROR), ERROR),),
    failure_class="permanent",
)


def reason(candidate: Candidate, form: TraceForm = FORM, **verdicts: object) -> str:
    verdict = admit(candidate, form, **verdicts)
    return verdict.reason if isinstance(verdict, Refused) else "admitted"


def says(content: str, **changes: object) -> Candidate:
    return replace(GOOD, content=content, **changes)


def test_a_good_lesson_passes_unchanged() -> None:
    assert admit(GOOD, FORM) == Admitted(GOOD)


def test_what_the_rules_distil_passes_the_gates() -> None:
    for candidate in distil(FORM).candidates:
        assert reason(candidate) == "admitted"


# Evidence


@pytest.mark.parametrize(
    ("quote", "repaired"),
    [
        (Quote(2, 7, 11, ERROR), Quote(2, 0, 36, ERROR)),
        (Quote(4, 0, 36, ERROR), Quote(2, 0, 36, ERROR)),
        (Quote(99, -5, 900, ERROR), Quote(2, 0, 36, ERROR)),
        (Quote(5, 0, 5, '"Done": there are 2 users'), Quote(5, 0, 26, "“Done”:  there are\n2 users")),
    ],
)
def test_a_quote_at_the_wrong_place_is_repaired_when_its_words_are_unique(quote: Quote, repaired: Quote) -> None:
    assert verbatim_quotes((quote,), FORM) == (repaired,)


@pytest.mark.parametrize(
    "quote",
    [
        Quote(2, 0, 36, "Error: page_size must be at most 200"),
        Quote(2, 0, 0, ""),
        Quote(2, 5, 7, ": "),
        Quote(0, 0, 30, "user users user users"),
    ],
)
def test_without_evidence_a_candidate_is_refused(quote: Quote) -> None:
    assert reason(replace(GOOD, quotes=(quote,))) == "not_grounded"


def test_words_that_stand_in_several_places_cannot_be_repaired() -> None:
    form = trace(say("the door is open"), say("the door is open"))
    assert verbatim_quotes((Quote(7, 0, 9, "the door is open"),), form) == ()
    assert len(verbatim_quotes((Quote(1, 3, 9, "the door is open"),), form)) == 1


def test_false_quotes_are_dropped_beside_true_ones() -> None:
    verdict = admit(replace(GOOD, quotes=(*GOOD.quotes, Quote(0, 0, 9, "never said here"))), FORM)
    assert verdict == Admitted(GOOD)


def test_a_short_quote_counts_only_as_a_whole_step() -> None:
    form = trace(say("no"), say("no way at all"))
    assert verbatim_quotes((Quote(0, 0, 2, "no"), Quote(1, 0, 2, "no")), form) == (Quote(0, 0, 2, "no"),)


@pytest.mark.parametrize(
    "content",
    [
        "Call fetch_all_pages instead of http_get.",
        "Set `retry_limit=3` for http_get.",
        "Edit /etc/api/limits.conf",
    ],
)
def test_names_that_the_trace_never_mentions_are_inventions(content: str) -> None:
    assert reason(says(content)) == "not_grounded"


@given(st.text(min_size=8, max_size=30), st.integers(-3, 40), st.integers(-3, 40))
def test_what_is_kept_is_always_verbatim(text: str, start: int, end: int) -> None:
    for quote in verbatim_quotes((Quote(2, start, end, text), Quote(5, start, end, text)), FORM):
        assert FORM.steps[quote.step].text[quote.start : quote.end] == quote.text


# Durable, passing, vague


@pytest.mark.parametrize(
    "content",
    [
        "The http_get report is still being processed.",
        "http_get shows 2 users today.",
        "The agent is waiting for the user to name the page_size.",
        "http_get 正在处理这个请求",
        "用户今天要看 http_get 的结果",
    ],
)
def test_what_is_true_only_now_is_not_durable(content: str) -> None:
    assert reason(says(content)) == "not_durable"


@pytest.mark.parametrize(
    "content",
    [
        "http_get 返回“正在处理”时，用 page_size 100 再查一次。",
        "When http_get answers “still being processed today”, poll it with the same page_size.",
        "Use `date.today()` rather than a fixed date in http_get.",
    ],
)
def test_quoted_words_do_not_make_a_lesson_momentary(content: str) -> None:
    form = replace(FORM, task="date.today()")
    assert reason(says(content), form) == "admitted"


@pytest.mark.parametrize(
    "candidate",
    [
        replace(GOOD, failure_class="transient"),
        says("The http_get server is down."),
        says("The users API is temporarily unavailable", kind="fact"),
        says("http_get 接口经常超时"),
        says("Retry."),
        says("稍后再试"),
    ],
)
def test_a_passing_failure_is_no_lesson(candidate: Candidate) -> None:
    assert reason(candidate) == "transient"


@pytest.mark.parametrize(
    "content",
    [
        "If the http_get service is down, use the cached users.",
        "http_get 的超时时间要设为 30 秒",
        "一旦接口不可用，就读缓存里的用户名单",
    ],
)
def test_advice_for_an_outage_states_no_outage(content: str) -> None:
    assert reason(says(content)) == "admitted"


def test_a_fact_whose_only_evidence_is_a_passing_error_is_refused() -> None:
    form = trace(call("search", q="x"), result("search", "Error: 503 Service Unavailable"))
    quote = Quote(1, 0, 30, "Error: 503 Service Unavailable")
    fact = says("The search tool gives 503 Service Unavailable.", kind="fact", quotes=(quote,))
    assert reason(fact, form) == "transient"


def test_an_episode_may_tell_of_a_passing_failure_and_of_the_moment() -> None:
    told = says("Failed today: http_get was down.", kind="task", failure_class="transient")
    assert reason(told) == "admitted"


@pytest.mark.parametrize(
    "content",
    [
        "Always be careful and double check the results.",
        "Make sure to follow the user's instructions properly.",
        "Plan the steps before you act.",
        "注意仔细检查结果",
        "遇到错误时要认真处理",
    ],
)
def test_advice_that_always_fits_is_too_vague(content: str) -> None:
    assert reason(says(content)) == "too_vague"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("Basic economy tickets cannot be rebooked.", "fact"),
        ("Ask for the reservation number before searching flights.", "experience"),
        ("先查询库存再下单，缺货的商品不能预订。", "experience"),
        ("用户要求记住：我不吃辣。", "preference"),
        ("Prefers aisle seats", "preference"),
    ],
)
def test_plain_but_definite_statements_pass(content: str, kind: str) -> None:
    assert reason(says(content, kind=kind)) == "admitted"


# What the caller found out


def test_the_callers_verdicts_refuse_first() -> None:
    assert admit(GOOD, FORM, unsafe="tells the agent to ignore its rules") == Refused(
        "unsafe", "tells the agent to ignore its rules"
    )
    assert reason(GOOD, unsafe=True, contains_pii=True) == "unsafe"
    assert reason(GOOD, contains_pii=True) == "contains_pii"


def test_placeholders_are_no_personal_data_and_no_inventions() -> None:
    assert reason(says("Send the http_get report to <EMAIL_1>.")) == "admitted"


def test_a_known_conclusion_names_its_memory() -> None:
    assert admit(GOOD, FORM, known="m1") == Refused("known", "m1")
    assert reason(GOOD, known=lambda candidate: "") == "admitted"


def test_the_dear_search_for_a_twin_runs_only_for_what_passed() -> None:
    asked: list[str] = []

    def twin(candidate: Candidate) -> str:
        asked.append(candidate.content)
        return ""

    assert reason(says("Be careful."), known=twin) == "too_vague"
    assert asked == []


@pytest.mark.parametrize(
    ("before", "kind", "expected"),
    [(2, "experience", "admitted"), (3, "experience", "over_limit"), (3, "fact", "admitted")],
)
def test_three_lessons_from_one_trace(before: int, kind: str, expected: str) -> None:
    assert reason(replace(GOOD, kind=kind), lessons_so_far=before) == expected


# Whether two texts conclude the same

SAME = (
    ("The user prefers aisle seats", "User prefers aisle seats."),
    ("Use `pip` to install", "Use pip to install"),
    ("Wait two seconds before retrying", "Wait 2 seconds before retrying"),
    ("The limit is 1,000 rows", "The limit is 1000 rows"),
    ("The API doesn't accept dates", "The API does not accept dates"),
    ("用户喜欢靠窗的座位", "用户偏好靠窗的座位"),
    ("等待3次后重试", "等待三次后重试"),
    ("非常适合", "很适合"),
)
DIFFERENT = (
    ("Use port 8000", "Use port 9000"),
    ("Do retry", "Do not retry"),
    ("He can cancel", "He cannot cancel"),
    ("fails with a token", "fails without a token"),
    ("Alice prefers tea", "Bob prefers tea"),
    ("The agent Alice prefers tea", "The agent Bob prefers tea"),
    ("call get_user first", "call get_order first"),
    ("Set --force", "Set --dry-run"),
    ("Use v2.1.0", "Use v2.2.0"),
    ("always use HTTPS", "always use HTTP"),
    ("edit /etc/a.conf", "edit /etc/b.conf"),
    ("Enable caching", "Disable caching"),
    ("run it before the migration", "run it after the migration"),
    ("Prefers window seat", "Prefers aisle seat"),
    ("The fee is 3.5 USD", "The fee is 35 USD"),
    ("the limit is 30%", "the limit is 30"),
    ("Send to <EMAIL_1>", "Send to <EMAIL_2>"),
    ("用户喜欢辣", "用户不喜欢辣"),
    ("重试三次", "重试五次"),
    ("启用缓存", "禁用缓存"),
    ("上午发邮件", "下午发邮件"),
    ("使用 python3", "使用 python2"),
)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_nothing_hard_keeps_them_apart(one: str, other: str) -> None:
    assert same_conclusion(one, other)
    assert same_conclusion(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_a_number_a_negation_or_a_name_keeps_them_apart(one: str, other: str) -> None:
    assert not same_conclusion(one, other)
    assert not same_conclusion(other, one)


@given(st.text(max_size=60), st.text(max_size=60))
def test_sameness_is_reflexive_and_symmetric(one: str, other: str) -> None:
    assert same_conclusion(one, one)
    assert same_conclusion(one, other) is same_conclusion(other, one)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_another_number_is_another_conclusion(one: int, other: int) -> None:
    assert same_conclusion(f"wait {one} seconds", f"wait {other} seconds") is (one == other)
