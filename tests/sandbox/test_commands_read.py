"""The judge on commands made by reading it, nearly all of which it allowed once, and on their harmless neighbours."""

from pathlib import Path

import pytest
import yaml

from loopkit.sandbox.shell import judge

READ = yaml.safe_load(Path(__file__).with_name("commands_read.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("entry", READ, ids=lambda entry: entry["does"])
def test_a_command_made_by_reading_is_allowed_only_if_harmless(entry):
    verdict = judge(entry["command"], folder="/srv/project").verdict
    assert (verdict == "allow") == (entry["kind"] == "harmless")
