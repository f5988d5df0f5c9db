"""Places are those of the original text, whatever folding does to its length."""

import pytest
from search import find_all, highlight

E_ACUTE = "e\u0301"


def found(text: str, term: str) -> list[str]:
    return [text[start:end] for start, end in find_all(text, term)]


def test_case_is_ignored() -> None:
    assert find_all("Tea, TEA and tea", "tEa") == [(0, 3), (5, 8), (13, 16)]


def test_what_is_not_there_is_not_found() -> None:
    assert find_all("tea", "rum") == []
    assert find_all("", "rum") == []
    assert find_all("te", "tea") == []


def test_an_empty_term_is_found_nowhere() -> None:
    assert find_all("tea", "") == []
    assert highlight("tea", "", "<", ">") == "tea"


def test_folding_may_change_the_length_of_a_character() -> None:
    assert find_all("Die Straße", "STRASSE") == [(4, 10)]
    assert find_all("Die STRASSE", "straße") == [(4, 11)]
    assert found("Fuß FUSS fuẞ", "fuss") == ["Fuß", "FUSS", "fuẞ"]
    assert found("ﬁne FINE", "fine") == ["ﬁne", "FINE"]


def test_places_after_a_character_that_grows_are_right() -> None:
    assert find_all("İİ ßß tea", "TEA") == [(6, 9)]
    assert find_all("ŉ ΐ ﬃ tea", "tea") == [(6, 9)]


def test_letters_with_two_small_forms_are_the_same() -> None:
    assert found("ΟΔΟΣ οδος οδοσ", "Οδοσ") == ["ΟΔΟΣ", "οδος", "οδοσ"]


@pytest.mark.parametrize("term", ["café", f"caf{E_ACUTE}", "CAFÉ", f"CAF{E_ACUTE.upper()}"])
def test_composed_and_decomposed_spellings_are_the_same(term: str) -> None:
    text = f"a café, a caf{E_ACUTE}, a cafe"

    assert find_all(text, term) == [(2, 6), (10, 15)]


def test_marks_may_come_in_any_equivalent_order() -> None:
    below_first, above_first = "q\u0323\u0307", "q\u0307\u0323"

    assert found(f"{below_first} {above_first}", below_first) == [below_first, above_first]
    assert found("ṩ s\u0307\u0323", "S\u0323\u0307") == ["ṩ", "s\u0307\u0323"]


def test_marks_in_an_order_that_is_not_equivalent_are_different() -> None:
    assert find_all("e\u0301\u0302", "e\u0302\u0301") == []


def test_a_letter_is_not_found_in_a_letter_with_marks() -> None:
    assert found(f"é {E_ACUTE} e", "e") == ["e"]
    assert found(f"the caf{E_ACUTE}s", "cafe") == []
    assert found("ı İ i I", "i") == ["i", "I"]


@pytest.mark.parametrize(("text", "term"), [("ß", "s"), ("aßb", "as"), ("aßb", "sb"), ("ﬁ", "f")])
def test_half_of_a_character_is_not_found(text: str, term: str) -> None:
    assert find_all(text, term) == []


def test_a_match_may_begin_after_half_a_match() -> None:
    assert find_all("ßss", "ss") == [(0, 1), (1, 3)]
    assert find_all("ßs", "ss") == [(0, 1)]
    assert find_all("sßs", "ss") == [(1, 2)]
    assert find_all("ßsb", "sb") == [(1, 3)]


def test_places_do_not_overlap() -> None:
    assert find_all("aAaAa", "aa") == [(0, 2), (2, 4)]
    assert find_all("banana", "ana") == [(1, 4)]


def test_the_text_itself_stays_as_it_was() -> None:
    text = f"İ: Caf{E_ACUTE} CAFÉ (ﬁn) 日本 <b>"

    assert highlight(text, "café", "[", "]") == f"İ: [Caf{E_ACUTE}] [CAFÉ] (ﬁn) 日本 <b>"
    assert highlight(text, "FIN", r"\1<", ">") == f"İ: Caf{E_ACUTE} CAFÉ (\\1<ﬁn>) 日本 <b>"
    assert highlight("a.b a+b", "A+B", "{", "}") == "a.b {a+b}"
    assert highlight("İo, IO, io", "io", "<", ">") == "İo, <IO>, <io>"


def test_long_texts_are_searched_quickly() -> None:
    text = "Straße und Café, " * 600

    assert len(find_all(text, "STRASSE UND CAFE\u0301")) == 600
    assert find_all("ß" * 10_000, "s" * 9) == []
