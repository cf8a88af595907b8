"""Where a text stands in a file, what replacing it changes, and why it may not be there."""

import bisect
import difflib
import re
from collections.abc import Iterator
from itertools import islice

from .paths import NAMES, NEWLINE, cut

DIFF = 80
"""Lines of a difference that are shown."""
AROUND = 3
"""Unchanged lines around each change."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def places_of(old: str, text: str) -> Iterator[int]:
    place = text.find(old)
    while place != -1:
        yield place
        place = text.find(old, place + 1)  # overlapping ones too: which is meant cannot be told


def line_at(text: str, place: int) -> int:
    return len(NEWLINE.findall(text, 0, place)) + 1


def difference(text: str, old: str, new: str) -> str:
    """What replacing every `old` changes, as a unified diff: each place apart, since files are long and changes few."""
    starts = [0, *(end.end() for end in NEWLINE.finditer(text))]
    spans: list[list[int]] = []  # first and last line, from 0, of places near each other
    for place in islice(re.finditer(re.escape(old), text), DIFF):
        first, last = (bisect.bisect(starts, edge) - 1 for edge in (place.start(), place.end() - 1))
        if spans and first - spans[-1][1] <= 2 * AROUND:
            spans[-1][1] = last
        else:
            spans.append([first, last])
    lines, shift = [], 0
    for first, last in spans:
        first, last = max(0, first - AROUND), min(len(starts) - 1, last + AROUND)
        piece = text[starts[first] : starts[last + 1] if last + 1 < len(starts) else None]
        was, now = _LINE.findall(piece), _LINE.findall(piece.replace(old, new))
        lines.append(f"@@ -{first + 1},{len(was)} +{first + 1 + shift},{len(now)} @@")
        for line in list(difflib.unified_diff(was, now, n=len(was)))[3:]:
            lines.append(cut(line.rstrip("\r\n")))
            if not line.endswith(("\r", "\n")):
                lines.append("\\ No newline at end of file")
        shift += len(now) - len(was)
    return "\n".join(lines[:DIFF] + [f"… {len(lines) - DIFF} more lines"] * (len(lines) > DIFF))


def why_absent(name: str, text: str, old: str) -> str:
    """Why `old` may not be there, and what is there instead."""
    lines = NEWLINE.split(text)
    bare = re.sub(r"(?m)^ *\d+\t", "", old)
    if bare != old and bare in text:
        return f"old is not in {name}: leave out the line numbers that read puts before each line"
    words = old.split()
    if words and len(words) < NAMES and (found := re.search(r"\s+".join(map(re.escape, words)), text)):
        first, last = line_at(text, found.start()), line_at(text, found.end())
        where = f"line {first}" if first == last else f"lines {first} to {last}"
        exact = cut("\n".join(lines[first - 1 : last]))
        return f"old is not in {name}: only white space differs from {where}, which is exactly {exact!r}"
    longest = max(NEWLINE.split(old), key=len).strip()
    near = difflib.get_close_matches(longest, dict.fromkeys(line.strip() for line in lines[:NAMES]), 3)
    if not near or not longest:
        return f"old is not in {name}, nor anything like it"
    like = [f"{number:>6}\t{cut(line)}" for number, line in enumerate(lines, 1) if line.strip() in near]
    return f"old is not in {name}; the nearest lines are\n" + "\n".join(like[:6])
