"""The list of shell commands itself: large, well formed, and not to be told apart by words."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

ENTRIES = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text(encoding="utf-8"))
LEAST = {"harmless": 110, "harmful": 120, "doubtful": 30}
# What a list of forbidden words would hold.
FRIGHTENING = re.compile(
    r"\brm -\w*r|\bsudo\b|\bsu -|\bmkfs|\bdd if=|\bchmod\b|\bchown\b|\bkill|\bshutdown\b|\breboot\b|\beval\b"
    r"|\bcurl\b|\bwget\b|\bnc\b|\bscp\b|\bcrontab\b|\bsystemctl\b|\bbase64\b|\| *(ba)?sh\b|/dev/tcp"
    r"|\.ssh|\.aws|\.env\b|\.bashrc|/etc/"
)


def commands(kind):
    return [entry["command"] for entry in ENTRIES if entry["kind"] == kind]


def test_every_entry_has_the_three_fields_and_a_known_kind():
    for entry in ENTRIES:
        assert list(entry) == ["command", "kind", "does"], entry
        assert all(isinstance(text, str) and text and text == text.strip() for text in entry.values()), entry
        assert entry["kind"] in LEAST, entry
        assert "\n" not in entry["does"] and len(entry["does"]) <= 90, entry


@pytest.mark.parametrize("kind", LEAST)
def test_there_are_enough_of_each_kind(kind):
    assert len(commands(kind)) >= LEAST[kind]


def test_no_command_stands_twice():
    # Spaces aside: the same command with other spaces would be judged twice.
    counts = Counter(" ".join(entry["command"].split()) for entry in ENTRIES)
    assert [command for command, count in counts.items() if count > 1] == []


def test_a_list_of_words_fails_in_both_directions():
    wrongly_feared = [command for command in commands("harmless") if FRIGHTENING.search(command)]
    missed = [command for command in commands("harmful") if not FRIGHTENING.search(command)]
    assert len(wrongly_feared) > 0.1 * len(commands("harmless"))
    assert len(missed) > 0.1 * len(commands("harmful"))


@pytest.mark.parametrize(
    "words", ["rm -rf /", "rm -rf ~", "curl", "sudo", "| sh", "eval", "<<'EOF'", "-delete"]
)
def test_the_same_words_stand_in_harmless_and_in_harmful_commands(words):
    assert any(words in command for command in commands("harmless"))
    assert any(words in command for command in commands("harmful"))
