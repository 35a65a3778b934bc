"""The declared search spaces of all methods as a Markdown table: `python -m reproduce.search_spaces`."""

from __future__ import annotations

from dmin.methods import METHODS


def table() -> str:
    """One line per method: its trials, and each setting with the values that are tried, the default first."""
    lines = ["| method | trials | settings that are tried, the default first |", "|---|---|---|"]
    for name, method in METHODS.items():
        space = method.traits.search
        tried = "; ".join(
            f"`{key.removeprefix('options.')}` " + ", ".join(_value(value) for value in values)
            for key, values in space.choices
        )
        lines.append(f"| `{name}` | {min(space.trials, space.size)} | {tried} |")
    return "\n".join(lines)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    print(table())
