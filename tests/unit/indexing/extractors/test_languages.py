"""A page in each of six languages and three scripts gives its names, and not its ordinary words."""

import pytest

from waylore.indexing.extractors.rules import RuleExtractor
from waylore.types.knowledge import Document, Passage

PAGES = {
    "de": (
        "Bibliothek",
        "Die Bibliothek in Marburg hat einen neuen Leiter. Der Stadtrat wählte Jonas Weidlich am Montag "
        "mit großer Mehrheit. Weidlich arbeitete vorher in Kassel und kennt das Haus seit Jahren. Viele "
        "Bürger wünschen sich längere Öffnungszeiten und mehr Bücher für Kinder. Der neue Leiter möchte "
        "die Ausleihe mit Koha verwalten, weil die alte Software nicht mehr gepflegt wird. Im März "
        "beginnt der Umbau der Lesesäle. Die Kosten trägt die Lahnstiftung, deren Vorsitz Hanna Brück "
        "hat.",
        "Marburg|Jonas Weidlich|Kassel|Koha|Hanna Brück",
        "Leiter|Stadtrat|Bürger|Software|Haus|Kosten|Montag|März",
    ),
    "fr": (
        "Le marché",
        "Le marché couvert de Quimper rouvre en mars. La mairie a confié les travaux à Bernard Lefloch, "
        "qui dirige une petite entreprise de Concarneau. Selon lui, les étals seront plus larges et les "
        "clients auront plus de place. Cependant, plusieurs commerçants craignent une hausse des loyers. "
        "Jeudi, Maëlle Kerbrat a demandé une réunion avec la mairie. Elle vend du fromage depuis dix ans "
        "et utilise le logiciel Dolibarr pour ses factures.",
        "Quimper|Bernard Lefloch|Concarneau|Maëlle Kerbrat|Dolibarr",
        "Selon|Cependant|Jeudi|Elle|La",
    ),
    "es": (
        "El huerto",
        "El huerto comunitario de Zaragoza celebra su primer año. Lucía Beltrán coordina a los "
        "voluntarios y reparte las tareas cada lunes. Muchos vecinos vienen después del trabajo. Además, "
        "la asociación Tierra Viva presta herramientas y organiza talleres en abril. Este verano quieren "
        "plantar tomates y pimientos. Beltrán lleva las cuentas con GnuCash, un programa libre.",
        "Zaragoza|Lucía Beltrán|Tierra Viva|GnuCash",
        "Muchos|Además|Este",
    ),
    "ru": (
        "Музей",
        "Музей открыл новую выставку в Казани. Её подготовила Анна Соколова вместе с мастерской "
        "«Северный свет». Посетители могут увидеть карты, письма и старые фотографии. Соколова долго "
        "работала в Твери и собирала документы сама. Сегодня вход бесплатный. Каталог печатает "
        "издательство Полярис, а каталог в сети ведёт программа Omeka.",
        "Казани|Анна Соколова|Северный свет|Твери|Полярис|Omeka",
        "Её|Посетители|Сегодня|Каталог",
    ),
    "zh": (
        "图书馆",
        "临江图书馆今年换了新的系统。馆长周明远说，旧的系统很慢，读者常常要等。周明远在云杉科技工作过五年，所"
        "以他请云杉科技来帮忙。现在读者可以在家里查书。临江图书馆每个星期三开放到晚上。云杉科技还为临江图书馆"
        "做了一个手机软件。周明远希望明年可以开一个新的分馆。",
        "临江图书馆|周明远|云杉科技",
        "系统|可以|读者|现在",
    ),
    "ja": (
        "図書館",
        "青葉図書館は新しいシステムを使い始めました。館長の佐伯美咲さんは、前のシステムが遅かったと言います。"
        "佐伯美咲さんは以前、ミナトソフトで働いていました。ミナトソフトは青葉図書館のためにアプリも作りました"
        "。青葉図書館は水曜日に夜まで開いています。来年、ミナトソフトは新しい検索を出す予定です。佐伯美咲さん"
        "は楽しみにしています。",
        "青葉図書館|佐伯美咲|ミナトソフト",
        "システム|館長|以前|来年",
    ),
}


@pytest.mark.parametrize("language", PAGES)
def test_page_gives_its_names(language: str) -> None:
    title, text, names, ordinary = PAGES[language]
    [extraction] = RuleExtractor().extract(Document("d", title), [Passage("p", "d", text, title, end=len(text))])
    assert set(names.split("|")) <= extraction.names.keys()
    assert not set(ordinary.split("|")) & extraction.names.keys()
    assert len(extraction.names) <= 2 * len(names.split("|"))


def test_language_without_table_uses_the_page_alone() -> None:
    text = (
        "Kurssi alkaa Oulussa syksyllä. Opiskelijat tuovat mukanaan veitsen ja esiliinan. Opettaja on Marja Koskela, "
        "joka tuntee Oulussa kaikki. Usein Koskela kertoo myös omista matkoistaan. Ilmoittautuminen päättyy pian."
    )
    [extraction] = RuleExtractor().extract(Document("d"), [Passage("p", "d", text, end=len(text))])
    assert {"Oulussa", "Marja Koskela"} <= extraction.names.keys()
    assert not {"Kurssi", "Opiskelijat", "Opettaja", "Usein", "Ilmoittautuminen"} & extraction.names.keys()
