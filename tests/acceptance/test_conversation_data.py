"""Check that the conversations are well formed and that their messages answer their questions; nothing is searched."""

import re

import pytest

from conversations import CONVERSATIONS, NAMES, Conversation, Question, find_matches, load

each_conversation = pytest.mark.parametrize("name", NAMES)
each_question = pytest.mark.parametrize(
    ("conversation", "question"),
    [pytest.param(load(name), question, id=question.id) for name in NAMES for question in load(name).questions],
)


# -- files ---------------------------------------------------------------------------------------------


def test_every_file_is_checked() -> None:
    assert sorted(path.stem for path in CONVERSATIONS.glob("*.json")) == sorted(NAMES)


@each_conversation
def test_ids_are_unique(name: str) -> None:
    conversation = load(name)
    ids = [message.id for message in conversation.messages] + [question.id for question in conversation.questions]
    assert len(set(ids)) == len(ids)


@each_conversation
def test_every_second_of_twenty_questions_is_held_out(name: str) -> None:
    assert [question.held_out for question in load(name).questions] == [False, True] * 10


@each_conversation
def test_messages_are_in_order_and_of_known_users(name: str) -> None:
    conversation = load(name)
    days = [message.at for message in conversation.messages]
    assert days == sorted(days)
    assert {message.user for message in conversation.messages} - {None} == set(conversation.users)
    assert {question.user for question in conversation.questions} == set(conversation.users)


@each_conversation
def test_a_session_belongs_to_one_user(name: str) -> None:
    owners = {(message.session, message.user) for message in load(name).messages}
    assert len(owners) == len({session for session, _ in owners})


@each_conversation
def test_facts_have_ordered_days_and_listed_predicates_are_used(name: str) -> None:
    conversation = load(name)
    stated = [(message, fact) for message in conversation.messages for fact in message.facts]
    for message, fact in stated:
        assert fact.valid_to is None or (fact.valid_from or message.at) <= fact.valid_to, message.id
        assert message.user is not None or fact.subject != "user", message.id
    assert set(conversation.single_valued) <= {fact.predicate for _, fact in stated}


@each_conversation
def test_removals_cover_a_message(name: str) -> None:
    conversation = load(name)
    assert all(any(removal.covers(message) for message in conversation.messages) for removal in conversation.forget)


# -- questions -----------------------------------------------------------------------------------------


@each_question
def test_question_is_asked_between_days_of_messages(conversation: Conversation, question: Question) -> None:
    assert question.asked_at not in {message.at for message in conversation.messages}
    assert question.as_of is None or question.as_of < question.asked_at


@each_question
def test_answer_was_said_to_the_user(conversation: Conversation, question: Question) -> None:
    if question.answer is None:
        assert question.never
        assert (question.said, question.when, question.stale, question.within) == (None,) * 4
    else:
        assert conversation.find_answers(question)


@each_question
def test_answer_matches_within_a_sentence(conversation: Conversation, question: Question) -> None:
    for message in conversation.find_answers(question):
        sentences = re.split(r"(?<=[.?!]) ", message.text)
        assert any(re.search(question.answer or "", sentence) for sentence in sentences)


@each_question
def test_stale_messages_precede_the_answer(conversation: Conversation, question: Question) -> None:
    known, answers = conversation.find_known(question), conversation.find_answers(question)
    stale = find_matches(question.stale, known)
    assert bool(stale) == (question.stale is not None)
    for message in stale:
        assert all(known.index(message) < known.index(answer) for answer in answers)


@each_question
def test_never_matches_only_hidden_messages(conversation: Conversation, question: Question) -> None:
    everything = list(conversation.messages)
    assert bool(find_matches(question.never, everything)) == (question.never is not None)
    assert not find_matches(question.never, conversation.find_known(question))


@each_question
def test_spans_are_ordered_and_have_enough_messages(conversation: Conversation, question: Question) -> None:
    assert all(low <= high for low, high in filter(None, (question.when, question.within)))
    if question.within:
        low, high = question.within
        assert sum(low <= message.at <= high for message in conversation.find_known(question)) >= question.first
    else:
        assert question.first == 1
