"""What part of a file a download asked for."""


class NotSatisfiable(Exception):
    """Nothing of the file was selected."""


def resolve(header: str, size: int) -> list[tuple[int, int]] | None:
    unit, _, listed = header.partition("=")
    elements = [element.strip() for element in listed.split(",") if element.strip()]
    if unit.lower() != "bytes" or not elements:
        return None
    try:
        ranges = [_parse(element, size) for element in elements]
    except ValueError:
        return None
    parts = sorted((first, last) for first, last in ranges if first <= last)
    if not parts:
        raise NotSatisfiable(header)
    merged = parts[:1]
    for first, last in parts[1:]:
        if first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def _parse(element: str, size: int) -> tuple[int, int]:
    start, dash, end = element.partition("-")
    if not dash:
        raise ValueError(element)
    if not start:
        suffix = int(end)
        if suffix < 0:
            raise ValueError(element)
        return max(0, size - suffix), size - 1
    first = int(start)
    if not end:
        return first, size - 1
    last = int(end)
    if last < first:
        raise ValueError(element)
    return first, min(last, size - 1)
