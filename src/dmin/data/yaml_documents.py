"""YAML with bounds: depth, aliases that multiply, keys given twice. Used for every YAML text that a user gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dmin.errors import DataError, one_line

MOST_DEPTH = 50
MOST_NODES = 5_000_000  # after aliases are replaced by what they stand for


def parse_yaml(text: str, source: Path | str) -> Any:
    """Parse one YAML document.

    Raises:
        DataError: with the line, for what is not YAML, nested too deeply, multiplied by aliases, or given twice.
    """
    loader: yaml.SafeLoader | None = None
    try:
        loader = yaml.SafeLoader(text)  # which looks for characters that YAML forbids
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, source)
        return loader.construct_document(node)
    except DataError:  # of `_check`; it is a ValueError too
        raise
    except yaml.YAMLError as error:
        raise DataError(f"{source} is not valid YAML: {one_line(error)}") from error
    except RecursionError as error:
        raise DataError(f"{source} is nested too deeply; at most {MOST_DEPTH} levels are read") from error
    except (ValueError, TypeError, OverflowError, KeyError, AttributeError) as error:  # odd dates, numbers, keys
        raise DataError(f"{source} holds a value that cannot be read ({one_line(error)}); put it in quotes") from error
    finally:
        if loader is not None:
            loader.dispose()


def _check(root: yaml.Node, source: Path | str) -> None:
    """Refuse what would be too deep or too large, before anything is made of it."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, depth: int) -> int:
        if depth > MOST_DEPTH:
            raise DataError(f"{source}, line {_line(node)}: nested too deeply; at most {MOST_DEPTH} levels are read")
        if id(node) in sizes:
            if sizes[id(node)] < 0:
                raise DataError(f"{source}, line {_line(node)}: an alias that holds itself")
            return sizes[id(node)]
        sizes[id(node)] = -1  # being counted
        total = 1
        for part in _parts(node):
            total += size(part, depth + 1)
            if total > MOST_NODES:
                raise DataError(f"{source}, line {_line(node)}: its aliases stand for more than {MOST_NODES:,} values")
        if isinstance(node, yaml.MappingNode):
            _check_keys(node, source)
        sizes[id(node)] = total
        return total

    size(root, 1)


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _check_keys(node: yaml.MappingNode, source: Path | str) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
            if key.value in seen:
                raise DataError(
                    f"{source}, line {_line(key)}: the key {key.value[:60]!r} is there twice (first in line "
                    f"{seen[key.value]}), and one would be lost"
                )
            seen[key.value] = _line(key)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1 if node.start_mark else 0
