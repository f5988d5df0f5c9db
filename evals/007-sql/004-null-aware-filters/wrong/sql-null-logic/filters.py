"""Turns conditions into a DuckDB expression."""

Scalar = str | int | float | bool | None
Condition = tuple[str, str, Scalar | list[Scalar]]


def where(conditions: list[Condition]) -> tuple[str, list[Scalar]]:
    """The expression that all conditions hold, and the parameters of its placeholders."""
    parts: list[str] = []
    parameters: list[Scalar] = []
    for column, operator, value in conditions:
        name = '"' + column.replace('"', '""') + '"'
        if isinstance(value, list):
            if operator not in ("in", "not in"):
                raise ValueError(f"unknown operator: {operator}")
            if not value:
                parts.append("false" if operator == "in" else "true")
                continue
            marks = ", ".join("?" for _ in value)
            parts.append(f"{name} {operator.upper()} ({marks})")
            parameters.extend(value)
        elif value is None and operator in ("=", "!="):
            parts.append(f"{name} IS NULL" if operator == "=" else f"{name} IS NOT NULL")
        elif operator in ("=", "!=", "<", ">"):
            parts.append(f"{name} {operator} ?")
            parameters.append(value)
        elif operator == "contains":
            parts.append(f"contains({name}, ?)")
            parameters.append(value)
        else:
            raise ValueError(f"unknown operator: {operator}")
    return " AND ".join(parts) or "true", parameters
