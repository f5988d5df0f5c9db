"""Rows of an exam become questions, all of them or none, and a refusal says which row and why."""

import base64
import json
import struct
import zlib
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from eval_pipeline.errors import DatasetError
from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.settings.gateway import Gateway
from eval_pipeline.settings.sections import Judge, Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.exam.dataset import load_questions


def a_row(**changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "id": "q1",
        "question": "What is 6 times 7?",
        "image": None,
        "answer": "42",
        "answer_type": "exactMatch",
        "category": "Math",
        "rationale": "Counting.",
        "raw_subject": "Arithmetic",
    }
    return row | changes


def without(name: str) -> dict[str, object]:
    return {key: value for key, value in a_row().items() if key != name}


def some_settings(root: Path, suite: Suite) -> Settings:
    return Settings(
        root=root,
        suites=(suite,),
        gateways=(Gateway(name="demo", kind="demo"),),
        judge=Judge(model="demo/judge"),
    )


def load(root: Path, *rows: dict[str, object]) -> tuple[ExamQuestion, ...]:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (root / "exam.jsonl").write_text(text, "utf-8")
    suite = Suite(name="hle", path=Path("exam.jsonl"))
    return tuple(load_questions(suite, some_settings(root, suite)))


def refusal(root: Path, *rows: dict[str, object]) -> str:
    with pytest.raises(DatasetError) as raised:
        load(root, *rows)
    return str(raised.value)


def a_picture(kind: str = "PNG", size: tuple[int, int] = (8, 8)) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", size, "red").save(buffer, kind)
    return buffer.getvalue()


def a_data_uri(content: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def a_bomb(width: int, height: int) -> bytes:
    """A PNG that claims a size and has no pixels: only its header can be read."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def test_a_row_becomes_a_question_of_its_suite(tmp_path: Path) -> None:
    image = a_data_uri(a_picture())

    questions = load(tmp_path, a_row(image=image, author_name="A", canary="C"))

    assert questions == (
        ExamQuestion(
            suite="hle",
            id="q1",
            question="What is 6 times 7?",
            image=image,
            answer="42",
            answer_type="exactMatch",
            category="Math",
            rationale="Counting.",
            raw_subject="Arithmetic",
        ),
    )


def test_the_order_of_the_rows_is_kept(tmp_path: Path) -> None:
    ids = ["z", "a/b", "m", "007"]

    questions = load(tmp_path, *(a_row(id=name) for name in ids))

    assert [question.id for question in questions] == ids


@pytest.mark.parametrize("nothing", [None, "", "  ", float("nan")])
def test_an_image_may_be_absent(tmp_path: Path, nothing: object) -> None:
    questions = load(tmp_path, a_row(image=nothing), without("image") | {"id": "q2"})

    assert [question.image for question in questions] == [None, None]


def test_rationale_and_subject_may_be_absent(tmp_path: Path) -> None:
    row = {key: a_row()[key] for key in ("id", "question", "answer", "answer_type", "category")}

    (question,) = load(tmp_path, row)

    assert (question.rationale, question.raw_subject) == ("", "")


@pytest.mark.parametrize("written", ["7", "1.50", "-0", "1e5", "1" + "0" * 5000])
def test_a_number_becomes_the_text_it_was_written_as(tmp_path: Path, written: str) -> None:
    line = json.dumps(a_row(answer="?")).replace('"?"', written)
    (tmp_path / "exam.jsonl").write_text(line, "utf-8")
    suite = Suite(name="hle", path=Path("exam.jsonl"))

    (question,) = load_questions(suite, some_settings(tmp_path, suite))

    assert question.answer == written


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        *((without(name), f"{name} is missing or blank") for name in ("id", "question", "answer")),
        *((without(name), f"{name} is missing or blank") for name in ("answer_type", "category")),
        (a_row(answer=" \n"), "answer is missing or blank"),
        (a_row(question=None), "question is missing or blank"),
        (a_row(answer=True), "answer must be text or a number"),
        (a_row(question=["a"]), "question must be text or a number"),
        (
            a_row(question="\ud800"),
            "question has half a surrogate pair, which is not valid Unicode",
        ),
        (a_row(id="a\x07"), "id must have no control characters"),
        (a_row(id="a\nb"), "id must have no control characters"),
        (a_row(id="x" * 201), "id must have at most 200 characters, it has 201"),
        (
            a_row(answer_type="essay"),
            "answer_type must be exactMatch or multipleChoice, not 'essay'",
        ),
    ],
)
def test_a_wrong_field_is_refused(tmp_path: Path, row: dict[str, object], reason: str) -> None:
    message = refusal(tmp_path, a_row(id="fine"), row)

    assert message.startswith("exam.jsonl: row 2")
    assert message.endswith(f": {reason}.")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("https://example.org/a.png", "only data URIs are allowed"),
        ("/etc/passwd", "only data URIs are allowed"),
        ("file:///etc/passwd", "only data URIs are allowed"),
        ("data:image/svg+xml;base64,AAAA", "only data URIs are allowed"),
        ("data:text/plain;base64,AAAA", "only data URIs are allowed"),
        ("data:image/png,AAAA", "only data URIs are allowed"),
        (17, "only data URIs are allowed"),
        ("data:image/png;base64,!!!!", "image has broken base64"),
        ("data:image/png;base64,AAA", "image has broken base64"),
        ("data:image/png;base64,ä", "image has broken base64"),
        (a_data_uri(b""), "image can not be decoded as PNG"),
        (a_data_uri(b"no picture"), "image can not be decoded as PNG"),
        (a_data_uri(a_picture(size=(300, 300))[:-60]), "image can not be decoded as PNG"),
        (
            a_data_uri(a_picture("JPEG", (300, 300))[:-200], "jpeg"),
            "image can not be decoded as JPEG",
        ),
        (a_data_uri(a_picture("BMP")), "image can not be decoded as PNG"),
        (a_data_uri(a_bomb(10_000, 5_001)), "image must have at most 50 million pixels"),
        (a_data_uri(a_bomb(10_000, 10_000)), "image must have at most 50 million pixels"),
        (a_data_uri(a_bomb(60_000, 60_000)), "image must have at most 50 million pixels"),
        (a_data_uri(bytes(20 * 1024 * 1024 + 1)), "image must have at most 20 MiB"),
        (a_data_uri(bytes(21 * 1024 * 1024)), "image must have at most 20 MiB"),
    ],
)
def test_a_wrong_image_is_refused(tmp_path: Path, image: object, reason: str) -> None:
    message = refusal(tmp_path, a_row(image=image))

    assert message.startswith("exam.jsonl: row 1 (id 'q1'): image ")
    assert reason in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("kind", "declared"),
    [("PNG", "png"), ("JPEG", "jpeg"), ("JPEG", "jpg"), ("GIF", "gif"), ("WEBP", "webp")],
)
def test_each_allowed_format_is_accepted(tmp_path: Path, kind: str, declared: str) -> None:
    image = a_data_uri(a_picture(kind), declared)

    (question,) = load(tmp_path, a_row(image=image))

    assert question.image == image


def test_a_second_row_of_the_same_id_is_refused_with_both_rows(tmp_path: Path) -> None:
    message = refusal(tmp_path, a_row(id="same"), a_row(id="other"), a_row(id="same"))

    assert message == "exam.jsonl: row 3 (id 'same'): id is the same as in exam.jsonl row 1."


def test_the_first_five_problems_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    rows = [a_row(id=f"q{number}", answer="") for number in range(1, 9)]

    lines = refusal(tmp_path, *rows).splitlines()

    assert len(lines) == 6
    assert lines[4] == "exam.jsonl: row 5 (id 'q5'): answer is missing or blank."
    assert lines[5] == "There are 3 more problems."


def test_every_problem_of_a_row_is_told(tmp_path: Path) -> None:
    lines = refusal(tmp_path, a_row(answer="", category="", image="x.png")).splitlines()

    assert [line.split(": ")[2].split()[0] for line in lines] == ["answer", "category", "image"]


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "exam.jsonl: the data set has no rows."


def test_an_image_under_a_wrong_type_gets_the_right_one(tmp_path: Path) -> None:
    picture = a_picture("JPEG")

    (question,) = load(tmp_path, a_row(image=a_data_uri(picture, "png")))

    assert question.image == a_data_uri(picture, "jpeg")
