"""A report that is there already, with its sections renewed, added and taken out."""

from collections.abc import Collection, Mapping, Sequence

from eval_pipeline.analysis.report.lines import content
from eval_pipeline.analysis.report.sections import Part, Section, marked


def updated(parts: Sequence[Part], sections: Sequence[Section], told: Collection[str]) -> str:
    """The file with those sections renewed that are as we wrote them.

    Those of which there are many come and go: what is new stands behind what it follows, and what
    was told before and is not there has been removed by somebody.
    """
    new = {section.name: section for section in sections}
    added = _added({part.name for part in parts}, sections, told)
    texts: list[str] = []
    was_taken_out = False
    for part in parts:
        lines = _without_blank(part.lines) if was_taken_out else part.lines
        was_taken_out = part.is_one_of_many and part.name not in new and not part.is_edited
        if not was_taken_out:
            texts.append(_now(part._replace(lines=lines), new))
            texts += _behind(part, added.pop(part.name, ()))
    return "".join(texts)


def _now(part: Part, new: Mapping[str, Section]) -> str:
    is_ours = part.name in new and not part.is_edited
    return part.renewed(new[part.name]) if is_ours else "".join(part.lines)


def _added(
    known: Collection[str], sections: Sequence[Section], told: Collection[str]
) -> dict[str, list[Section]]:
    """The new ones of many, by the section that they stand behind, if any of it is left."""
    found: dict[str, list[Section]] = {}
    before, waiting = "", list[Section]()
    for section in sections:
        if not section.is_one_of_many:
            before, waiting = section.name if section.name in known else "", []
        elif section.name in known:
            before, found[section.name], waiting = section.name, waiting, []
        elif section.name not in told:
            (found.setdefault(before, []) if before else waiting).append(section)
    return found


def _behind(part: Part, sections: Sequence[Section]) -> list[str]:
    if not sections:
        return []
    end = part.end_of_line
    texts = [f"\n{marked(section)}".replace("\n", end) for section in sections]
    is_open = part.lines[-1] == content(part.lines[-1])
    return [end, *texts] if is_open else texts


def _without_blank(lines: Sequence[str]) -> Sequence[str]:
    """What follows a section that is taken out, which stood between two blank lines."""
    return lines[1:] if lines and not lines[0].strip() else lines
