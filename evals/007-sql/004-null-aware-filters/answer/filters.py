"""Turns conditions into a DuckDB expression that is true or false for every row."""

Scalar = str | int | float | bool | None
Condition = tuple[str, str, Scalar | list[Scalar]]

EQUAL = "{column} IS NOT DISTINCT FROM ?"
TEMPLATES = {
    "=": EQUAL,
    "!=": "{column} IS DISTINCT FROM ?",
    "<": "coalesce({column} < ?, false)",
    ">": "coalesce({column} > ?, false)",
    "contains": "coalesce(contains({column}, ?), false)",
}


def where(conditions: list[Condition]) -> tuple[str, list[Scalar]]:
    """The expression that all conditions hold, and the parameters of its placeholders."""
    expressions = [_expression(column, operator, value) for column, operator, value in conditions]
    parameters: list[Scalar] = []
    for _, _, value in conditions:
        parameters.extend(value if isinstance(value, list) else [value])
    return " AND ".join(expressions) or "true", parameters


def _expression(column: str, operator: str, value: Scalar | list[Scalar]) -> str:
    """One condition in brackets, with a placeholder for each of its values."""
    name = _quoted(column)
    if operator in ("in", "not in") and isinstance(value, list):
        any_of = " OR ".join([EQUAL.format(column=name)] * len(value)) or "false"
        return f"({any_of})" if operator == "in" else f"(NOT ({any_of}))"
    if operator not in TEMPLATES or isinstance(value, list):
        raise ValueError(f"{operator!r} can not be applied to {value!r}")
    return f"({TEMPLATES[operator].format(column=name)})"


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
