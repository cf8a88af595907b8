"""What is judged, read from where it stands."""

import pytest

from loopkit.judges import Material


@pytest.fixture
def folder(tmp_path):
    """A main file and what may stand beside it."""
    for name, content in {
        "SKILL.md": b"main",
        "references/a.md": "é".encode(),
        "logo.png": b"\x89PNG\xff",
        "large.txt": b"x" * 1_000_001,
        "fits.txt": b"x" * 1_000_000,
        ".git/config": b"hidden",
        "a/.cache/b.txt": b"hidden",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_what_stands_beside_the_file_is_read_or_at_least_named(folder):
    material = Material.read(folder / "SKILL.md", goal="tea")
    assert (material.main, material.name, material.goal) == ("main", "SKILL.md", "tea")
    assert dict(material.files) == {"fits.txt": "x" * 1_000_000, "references/a.md": "é"}
    assert list(material.others) == ["large.txt", "logo.png"]
    assert list(material.texts()) == ["SKILL.md", "fits.txt", "references/a.md"]


def test_a_main_file_that_cannot_be_read_is_an_error(folder):
    with pytest.raises(UnicodeDecodeError):
        Material.read(folder / "logo.png")
    with pytest.raises(OSError, match="nowhere"):
        Material.read(folder / "nowhere.md")


@pytest.mark.parametrize("candidate", ["text", {"main": "text"}, Material(main="text")])
def test_a_text_or_its_fields_are_a_material(candidate):
    assert Material.of(candidate) == Material(main="text")


@pytest.mark.parametrize("candidate", [3, None, ["text"], {"files": {}}, {"main": "x", "colour": "blue"}])
def test_anything_else_is_none(candidate):
    with pytest.raises(TypeError, match="cannot judge|colour"):
        Material.of(candidate)
