"""Turns conditions into a DuckDB expression that is true or false for every row."""

Scalar = str | int | float | bool | None
Condition = tuple[str, str, Scalar | list[Scalar]]


def where(conditions: list[Condition]) -> tuple[str, list[Scalar]]:
    """The expression that all conditions hold, and the parameters of its placeholders."""
    parts: list[str] = []
    parameters: list[Scalar] = []
    for column, operator, value in conditions:
        name = '"' + column.replace('"', '""') + '"'
        same = f"{name} IS NOT DISTINCT FROM ?"
        if operator in ("in", "not in") and isinstance(value, list):
            any_of = " OR ".join([same] * len(value)) or "false"
            parts.append(f"({any_of})" if operator == "in" else f"NOT ({any_of})")
            parameters.extend(value)
            continue
        if isinstance(value, list) or operator not in ("=", "!=", "<", ">", "contains"):
            raise ValueError(f"unknown operator: {operator}")
        if operator == "contains":
            parts.append(f"coalesce({name} LIKE ?, false)")
            parameters.append(f"%{value}%")
            continue
        if operator in ("=", "!="):
            parts.append(same if operator == "=" else f"{name} IS DISTINCT FROM ?")
        else:
            parts.append(f"coalesce({name} {operator} ?, false)")
        parameters.append(value)
    return " AND ".join(parts) or "true", parameters
