"""The shipped data sets are what their provenance says."""

import hashlib
from pathlib import Path

from experiments.knights.puzzles import PERTURBATIONS, generate, load

DATA = Path(__file__).parent.parent / "data"


def test_checksums_hold_and_cover_every_data_file():
    listed = dict(reversed(line.split("  ")) for line in (DATA / "SHA256SUMS").read_text().splitlines())
    shipped = {str(path.relative_to(DATA)) for path in DATA.rglob("*.jsonl")}
    assert set(listed) == shipped
    for name, expected in listed.items():
        assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == expected


def test_sample_puzzles_can_be_generated_again():
    again = [puzzle for people in (2, 3, 4, 5) for puzzle in generate(people, 7, 2)]
    again += [generate(3, 7, 1, perturb)[0] for perturb in PERTURBATIONS[1:]]
    assert load(DATA / "knights" / "sample.jsonl") == again
