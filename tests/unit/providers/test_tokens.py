"""Token counts are tiktoken's where it is installed, and else an estimate that errs on the high side."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.models import CACHE, damaged

from waylore.errors import ModelUnavailable
from waylore.providers.tokens import counter
from waylore.text import pieces

ROOT = Path(__file__).parents[3]
ENCODINGS = ["cl100k_base", "o200k_base"]
TEXTS = {
    "README.md": (ROOT / "README.md").read_text("utf-8"),
    "ARCHITECTURE.md": (ROOT / "ARCHITECTURE.md").read_text("utf-8"),
    "code": (ROOT / "src" / "waylore" / "text.py").read_text("utf-8"),
    "English": "All human beings are born free and equal in dignity and rights. They are endowed with reason.",
    "names": "Lothair II was the son of Lothair I and Ermengarde of Tours; Teutberga was his wife.",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren, mit Vernunft begabt.",
    "French": "Tous les êtres humains naissent libres et égaux en dignité et en droits, doués de conscience.",
    "Polish": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw.",
    "Finnish": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan.",
    "Turkish": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.",
    "Vietnamese": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền.",
    "Russian": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "Hebrew": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "Arabic": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق.",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "Tamil": "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்.",
    "Thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "Georgian": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით.",
    "Chinese": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心。",
    "traditional Chinese": "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心。",
    "Japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "Korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "JSON": '{"id": "a1b2c3d4e5f60718", "score": 0.018273645, "at": "2025-12-17T09:30:00Z"}',
    "numbers": "3.14159265358979 2,147,483,647 1970-01-01 +49 30 123456 1e-9",
    "address": "https://en.wikipedia.org/wiki/Lothair_II?oldid=123456&action=edit#Divorce%20case",
    "signs": "x₁² + y₂² ≤ ½·π × 10⁻³, ∀ε>0 → ✅ 🙂 👩‍💻 🚀 --- === !!!",
    "capitals": "WHEREAS RECOGNITION OF THE INHERENT DIGNITY IS THE FOUNDATION OF FREEDOM",
    "indented": "def f(x):\n\n\n" + " " * 40 + "return x\n\t\t\t\tpass\n",
}


@pytest.fixture
def vocabularies(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = CACHE / "tiktoken"
    if damaged("tiktoken", directory):
        remedy = f"{directory} is missing or damaged; run `python tools/protocols.py tiktoken`"
        pytest.fail(remedy) if os.environ.get("CI") else pytest.skip(remedy)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(directory))


@pytest.mark.model
@pytest.mark.usefixtures("vocabularies")
def test_tokens_are_counted_as_the_model_counts_them() -> None:
    assert counter()("") == 0
    assert counter()("hello world") == counter("cl100k_base")("hello world") == 2
    assert counter()("人人生而自由") < counter("cl100k_base")("人人生而自由")


@pytest.mark.model
@pytest.mark.usefixtures("vocabularies")
def test_any_text_can_be_counted() -> None:
    assert counter()("<|endoftext|>") > 1
    assert counter()("\ud800") >= 1


@pytest.mark.model
@pytest.mark.usefixtures("vocabularies")
@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("text", TEXTS)
def test_the_estimate_is_hardly_ever_low(text: str, name: str) -> None:
    assert pieces(TEXTS[text]) >= 0.93 * counter(name)(TEXTS[text])


@pytest.mark.model
@pytest.mark.usefixtures("vocabularies")
@pytest.mark.parametrize("text", ["README.md", "ARCHITECTURE.md", "English", "names", "German", "Chinese"])
def test_the_estimate_is_not_wildly_high(text: str) -> None:
    assert pieces(TEXTS[text]) <= 2 * counter()(TEXTS[text])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("to be or not", 4),
        ("passage", 2),
        ("1984", 2),
        ("a+b", 3),
        ("漢字", 3),
        ("漢", 2),
        ("да", 1),
        ("🙂", 3),
        ("x\n\ny", 3),
        ("\0", 1),
    ],
)
def test_pieces_of_each_kind(text: str, expected: int) -> None:
    assert pieces(text) == expected


@given(st.text())
def test_every_sign_counts(text: str) -> None:
    assert pieces(text) >= pieces(text.strip()) >= bool(text.strip())
    assert pieces(text) <= 3 * len(text)


@given(st.characters(exclude_categories=["Zs", "Cc"]))
def test_no_character_is_free(character: str) -> None:
    assert pieces(character) >= 1


def test_an_encoding_that_tiktoken_does_not_know_is_refused() -> None:
    with pytest.raises(ModelUnavailable, match="list_encoding_names"):
        counter("nobody_base")


def test_without_a_network_the_directory_to_fill_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(address: str) -> bytes:
        raise OSError(f"no way to {address}")

    monkeypatch.setattr("tiktoken.load.read_file", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ModelUnavailable, match="TIKTOKEN_CACHE_DIR"):
        counter("p50k_base")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'waylore\[tokens\]'"):
        counter()
