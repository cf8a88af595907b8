"""Who may judge whom."""

import warnings

import pytest

from loopkit.judges import SKILL_RUBRIC, RubricJudge, check_independence, kinship

PAIRS = [
    ("same model", "openai:gpt-5-mini", "openai:gpt-5-mini"),
    ("same model", "openai:gpt-5-mini", "azure:gpt-5-mini"),
    ("same model", "openai-chat:gpt-5-mini", "openai:gpt-5-mini-2025-08-07"),
    ("same model", "anthropic:claude-haiku-4-5", "anthropic:claude-haiku-4-5-20251001"),
    ("same model", "anthropic:claude-haiku-4-5", "bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0"),
    ("same model", "anthropic:claude-haiku-4-5", "openrouter:anthropic/claude-haiku-4-5"),
    ("same model", "embedded", "embedded"),
    ("same model", "simulated:random", "simulated:random"),
    ("same family", "anthropic:claude-opus-4-8", "anthropic:claude-sonnet-4-6"),
    ("same family", "anthropic:claude-opus-4-8", "openrouter:anthropic/claude-haiku-4-5"),
    ("same family", "google:gemini-3-flash", "ollama:gemma3"),
    ("same family", "openai:o3", "openai:gpt-5-mini"),
    ("same family", "ollama:smollm2", "embedded"),
    ("same family", "groq:deepseek-r1-distill-llama-70b", "deepseek:deepseek-reasoner"),
    ("same family", "bedrock:us.deepseek.r1-v1:0", "deepseek:deepseek-reasoner"),
    ("same family", "openrouter:nvidia/llama-3.1-nemotron-70b-instruct", "ollama:llama3.2"),
    ("same model", "embedded", "huggingface:HuggingFaceTB/SmolLM2-135M-Instruct"),
    ("same provider", "openai:gpt-5", "openai:some-new-thing"),
    ("same provider", "simulated:random", "simulated:oracle"),
    ("independent", "openai:gpt-5", "anthropic:claude-opus-4-8"),
    ("independent", "openrouter:openai/gpt-5", "openrouter:anthropic/claude-opus-4-8"),
    ("independent", "ollama:qwen3", "ollama:llama3.2"),
    ("independent", "embedded", "openai:gpt-5"),
    ("independent", "groq:llama-3.3-70b", "mistral:mistral-large-latest"),
]


@pytest.mark.parametrize(("found", "one", "other"), PAIRS)
def test_kinship_is_known_and_mutual(found, one, other):
    assert kinship(one, other) == kinship(other, one) == found


@pytest.mark.parametrize(("found", "judge", "writer"), PAIRS)
def test_the_same_model_is_refused_kin_warns_and_strangers_are_fine(found, judge, writer):
    if found == "same model":
        with pytest.raises(ValueError, match="same model") as raised:
            check_independence(judge, writer)
        assert judge in str(raised.value) and "allow_same_model=True" in str(raised.value)
        with pytest.warns(UserWarning, match="same model"):
            assert check_independence(judge, writer, allow_same_model=True) == found
    elif found == "independent":
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert check_independence(judge, writer) == found
    else:
        with pytest.warns(UserWarning, match=f"{judge} and writer {writer} are of the {found}"):
            assert check_independence(judge, writer) == found


def test_a_rubric_judge_knows_its_writer():
    with pytest.raises(ValueError, match="simulated:random cannot judge what simulated:random wrote"):
        RubricJudge("simulated:random", SKILL_RUBRIC, writer="simulated:random")
    with pytest.warns(UserWarning, match="same model"):
        RubricJudge("simulated:random", SKILL_RUBRIC, writer="simulated:random", allow_same_model=True)
    with pytest.warns(UserWarning, match="same provider"):
        RubricJudge("simulated:random", SKILL_RUBRIC, writer="simulated:oracle")
