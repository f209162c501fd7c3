"""Test memories of several users, agents and sessions, and at several times (TRIED T20, MEMORY.md B 1, 8, 11, 12)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from waylore import Waylore
from waylore.errors import ArgumentError, Forbidden
from waylore.types.author import Author

PEANUTS = "I am allergic to peanuts."
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TALK = [
    {"role": "user", "content": "I moved to Bergen."},
    {"role": "assistant", "content": "When was that?"},
    {"role": "user", "content": "On the first of March."},
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with Waylore.open(tmp_path / "scopes.waylore", clock=lambda: NOW) as memory:
        yield memory


def list_hits(memory: Waylore, query: str, **scope: str) -> set[tuple[str, str]]:
    return {(hit.document.user, hit.text) for hit in memory.search(query, record_use=False, **scope).hits}  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["file", "conversation"])
def test_same_text_of_two_users_is_two_documents(memory: Waylore, source: str) -> None:
    ann, ben = (memory.add(PEANUTS, user=user, source=source) for user in ("ann", "ben"))  # type: ignore[arg-type]
    assert ann != ben
    assert list_hits(memory, "peanuts", user="ann") == {("ann", PEANUTS)}
    assert list_hits(memory, "peanuts", user="ben") == {("ben", PEANUTS)}
    assert list_hits(memory, "peanuts") == set()


def test_facts_of_two_users_are_apart(memory: Waylore) -> None:
    [ann] = memory.add_facts([("Ada", "lives_in", "Oslo")], user="ann")
    [ben] = memory.add_facts([("Ada", "lives_in", "Rome")], user="ben")
    assert ann != ben
    assert [fact.object for fact in memory.facts("Ada", user="ann")] == ["Oslo"]
    assert [fact.object for fact in memory.facts("Ada", user="ben")] == ["Rome"]
    assert memory.facts("Ada") == ()


def test_sentence_of_another_day_is_another_memory(memory: Waylore) -> None:
    days = ["2026-01-01", "2026-01-08", "2026-01-08"]
    ids = [memory.add("I went running.", user="ann", source="conversation", at=day) for day in days]
    assert len(set(ids)) == 2
    assert len(memory.documents(user="ann")) == 2


def test_address_is_one_document_for_each_user(memory: Waylore) -> None:
    first = memory.add("One.", uri="note", user="ann", at="2026-01-01")
    assert memory.add("Two.", uri="note", user="ann", at="2026-02-01") == first
    assert memory.add("Three.", uri="note") != first
    assert list_hits(memory, "one two three", user="ann") == {("ann", "Two."), ("", "Three.")}


def test_messages_become_turns_with_speaker_and_time(memory: Waylore) -> None:
    report = memory.remember(TALK, user="mara", agent="clerk", session="s", at="2026-03-08")
    assert (report.new, report.known, report.cut, len(report.documents)) == (3, 0, 0, 3)
    turns = [memory.get(id_, user="mara") for id_ in report.documents]
    assert [turn.passages[0].speaker for turn in turns] == ["mara", "clerk", "mara"]
    assert [turn.passages[0].role for turn in turns] == ["user", "assistant", "user"]
    assert {turn.passages[0].at for turn in turns} == {datetime(2026, 3, 8, tzinfo=UTC)}
    positions = [turn.passages[0].position for turn in turns]
    assert positions == sorted(set(positions))


def test_known_messages_change_nothing(memory: Waylore) -> None:
    memory.remember(TALK[:2], user="mara", session="s")
    before = list(memory.export_lines())
    assert (memory.remember(TALK[:2], user="mara", session="s").known, list(memory.export_lines())) == (2, before)
    report = memory.remember(TALK, user="mara", session="s")
    assert (report.new, report.known) == (1, 2)
    assert memory.remember(TALK, user="mara", session="other").new == 3
    assert memory.remember(TALK, user="jonas", session="s").new == 3


def test_repeated_message_of_a_call_is_kept(memory: Waylore) -> None:
    yes = [{"role": "user", "content": "Yes."}] * 2
    assert memory.remember(yes, user="mara", session="s").new == 2
    assert memory.remember(yes, user="mara", session="s").new == 0


def test_calls_of_tools_are_left_out(memory: Waylore) -> None:
    messages = [*TALK, {"role": "tool", "content": "42 rows"}]
    assert memory.remember(messages, user="mara", session="s").new == 3
    assert memory.remember(messages, user="mara", session="s", tools=True).new == 1
    with pytest.raises(ArgumentError, match="messages must not be empty"):
        memory.remember([{"role": "tool", "content": "42 rows"}])


def test_long_message_is_cut_into_passages_of_one_turn(memory: Waylore) -> None:
    text = " ".join(f"Sentence number {n} tells something about the harbour." for n in range(400))
    report = memory.remember(text, user="mara", session="s", at="2026-01-05")
    turn = memory.get(report.documents[0], user="mara")
    assert (report.new, report.cut) == (1, 1)
    assert {(passage.speaker, passage.position) for passage in turn.passages} == {("mara", turn.passages[0].position)}


def test_facts_belong_to_the_last_message(memory: Waylore) -> None:
    report = memory.remember(TALK, user="mara", session="s", facts=[("mara", "lives_in", "Bergen")])
    assert [str(fact) for fact in report.facts if fact.predicate == "lives_in"] == ["mara —lives_in→ Bergen"]
    assert memory.get(report.documents[-1], user="mara").facts


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        ({"user": "mara"}, ["", "jonas"]),
        ({"user": "mara", "session": "s"}, ["", "jonas", "mara"]),
        ({"user": "mara", "since": "2026-02-01"}, ["", "jonas", "mara"]),
        ({"user": "mara", "until": "2026-02-01"}, ["", "jonas", "mara"]),
        ({"user": "nobody"}, ["", "jonas", "mara", "mara"]),
        ({"where": {"kind": "note"}}, ["jonas", "mara", "mara"]),
    ],
)
def test_forget_by_scope(memory: Waylore, scope: dict[str, str], left: list[str]) -> None:
    memory.add("Shared.", metadata={"kind": "note"})
    memory.remember("First.", user="mara", session="s", at="2026-01-10")
    memory.remember("Second.", user="mara", session="t", at="2026-03-10")
    memory.remember("Third.", user="jonas", session="s", at="2026-03-10")
    planned = memory.forget(**scope, dry_run=True)  # type: ignore[arg-type]
    receipt = memory.forget(**scope)  # type: ignore[arg-type]
    assert set(planned.documents) == set(receipt.documents)
    users = [line.split('"user":"')[1].split('"')[0] if '"user"' in line else "" for line in memory.export_lines()]
    assert sorted(users[1:]) == sorted(left)
    assert memory.verify_forgotten(receipt) == ()


def test_forget_of_nothing_is_refused(memory: Waylore) -> None:
    with pytest.raises(ArgumentError, match="documents must not be empty"):
        memory.forget()
    assert memory.forget("nowhere", user="mara").missing == ("nowhere",)


def test_author_of_a_user_stays_with_that_user(memory: Waylore) -> None:
    memory.add("Shared tea.")
    memory.remember("Tea for Jonas.", user="jonas")
    mara = memory.as_author(Author("key", user="mara"))
    mara.remember("Tea for Mara.")
    assert list_hits(mara, "tea") == {("", "Shared tea."), ("mara", "Tea for Mara.")}
    for call in (lambda: mara.search("tea", user="jonas"), lambda: mara.forget(user="jonas"), mara.stats):
        with pytest.raises(Forbidden):
            call()
    with pytest.raises(Forbidden):
        mara.forget(memory.documents(limit=1)[0].id)
    with pytest.raises(ArgumentError, match="documents must not be empty"):
        mara.forget()
    assert len(mara.forget(user="mara").documents) == 1


def test_search_as_of_leaves_out_what_was_said_later(memory: Waylore) -> None:
    memory.remember("I live in Oslo.", user="mara", at="2026-01-10")
    memory.remember("I live in Bergen.", user="mara", at="2026-03-10")
    assert list_hits(memory, "where do I live", user="mara", as_of="2026-02-01") == {("mara", "I live in Oslo.")}
    assert memory.facts("Bergen", user="mara", as_of="2026-02-01") == ()


def test_auto_chooses_conversation_where_all_passages_are_turns(memory: Waylore) -> None:
    memory.remember(TALK, user="mara", session="s", at="2026-03-08")
    found = memory.search("When did I move to Bergen?", user="mara", record_use=False)
    assert (found.recipe, found.route_reason) == (
        "conversation",
        "conversation: everything here is a turn of a conversation",
    )
    assert [hit.text for hit in found.hits[:2]] == ["I moved to Bergen.", "On the first of March."]
    memory.add("Bergen is a city.")
    found = memory.search("When did I move to Bergen?", user="mara")
    assert (found.recipe, found.route_reason) == ("mixed", "mixed: here are documents and turns of conversations")
    assert memory.search("When did I move to Bergen?").recipe == "chain"


def test_group_by_session_returns_the_best_turn_of_each(memory: Waylore) -> None:
    question = "the harbour office of Bergen"
    for session, words in (("one", ("harbour office", "harbour", "office of Bergen")), ("two", ("Bergen", "harbour"))):
        said = [
            {"role": "user", "content": f"I saw the {word} on day {n} of {session}."} for n, word in enumerate(words)
        ]
        memory.remember(said, user="mara", session=session, at="2026-03-08")
    memory.remember("The harbour office of Bergen is mine.", user="jonas", session="one")
    for title in ("Harbour", "Office"):
        memory.add(f"{title} of Bergen.", user="mara", title=title)
    turns = memory.search(question, user="mara", top_k=20).hits
    grouped = memory.search(question, user="mara", top_k=20, group_by="session").hits
    best = {hit.document.session: hit.id for hit in reversed(turns) if hit.document.session}
    pages = [hit.id for hit in turns if not hit.document.session]
    assert (len(turns), len(best), len(pages)) == (7, 2, 2)
    assert [hit.id for hit in grouped] == [hit.id for hit in turns if hit.id in {*best.values(), *pages}]
    assert len(memory.search(question, user="mara", top_k=3, group_by="session").hits) == 3


def test_group_by_fills_top_k_from_other_sessions(memory: Waylore) -> None:
    for number in range(12):
        said = [{"role": "user", "content": f"Harbour {'harbour ' * number}{n}."} for n in range(6)]
        memory.remember(said, user="mara", session=str(number), at="2026-03-08")
    found = memory.search("harbour", user="mara", top_k=4, group_by="session")
    assert len({hit.document.session for hit in found.hits}) == len(found.hits) == 4
    assert len(memory.search("harbour", user="mara", top_k=4, group_by="turn").hits) == 4


def test_group_by_takes_turn_or_session(memory: Waylore) -> None:
    with pytest.raises(ArgumentError, match="group_by must be one of turn, session"):
        memory.search("harbour", group_by="day")  # type: ignore[arg-type]


def test_forgetting_what_contains_words(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        for user, text in (
            ("ann", "My door code is 4471."),
            ("ann", "The code of ethics."),
            ("ben", "Code 4471 it is."),
        ):
            memory.remember(text, user=user, session=text)
        memory.add("Everyone knows the code 4471.")
        planned = memory.forget(user="ann", matching="CODE is 4471", dry_run=True)
        assert len(planned.documents) == 1
        assert memory.stats().documents == 4
        assert memory.forget(user="ann", matching="4471").documents == planned.documents
        assert memory.forget(user="ann", matching="4471").documents == ()
        assert [hit.document.user for hit in memory.search("4471", user="ben", method="keyword")] == ["ben", ""]
        for options in ({"expired": True}, {"documents": "x"}):
            documents = [options.pop("documents")] if "documents" in options else []
            with pytest.raises(ArgumentError, match="pass it without"):
                memory.forget(*documents, matching="4471", **options)  # type: ignore[arg-type]
