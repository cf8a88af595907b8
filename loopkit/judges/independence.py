"""Who may judge whom: models prefer what they, or their kin, have written.

Known since the first studies of models as judges (self-enhancement bias: Zheng et al. 2023, arXiv 2306.05685; they
recognise and favour their own text: Panickssery et al. 2024, arXiv 2404.13076).
"""

import re
import warnings
from typing import Literal

Kinship = Literal["independent", "same provider", "same family", "same model"]

FAMILIES = {
    "openai": r"openai|gpt|chatgpt|o[1-9](?!\w)|codex|davinci",
    "anthropic": r"anthropic|claude",
    "google": r"google|gemini|gemma|palm",
    "meta": r"llama",
    "mistral": r"mistral|mixtral|ministral|codestral|devstral|magistral|pixtral",
    "alibaba": r"qwen|qwq",
    "deepseek": r"deepseek",
    "xai": r"x-ai|grok",
    "microsoft": r"microsoft|phi-?\d",
    "moonshot": r"kimi|moonshot",
    "zhipu": r"glm|chatglm",
    "cohere": r"command|cohere|aya",
    "amazon": r"amazon|nova|titan",
    "ibm": r"granite",
    "nvidia": r"nvidia|nemotron",
    "huggingface": r"smollm",
    "bytedance": r"doubao|seed-\d",
    "minimax": r"minimax|abab",
}
ROUTERS = {
    "azure", "bedrock", "cerebras", "fireworks", "gateway", "github", "groq", "heroku", "huggingface", "litellm",
    "nebius", "ollama", "openrouter", "ovhcloud", "together", "vercel", "vertexai", "google-vertex",
}  # fmt: skip
"""Providers that serve models of many makers: to share one says nothing."""


def kinship(judge: str, writer: str) -> Kinship:
    """How close two model ids (`provider:name`) are to each other.

    `same model` also where two providers serve it, or only the date or version suffix differs; `same family` where one
    maker trained both (as far as `FAMILIES` knows the names); `same provider` where one company serves both.
    """
    if judge == writer or _name(judge) == _name(writer):
        return "same model"
    if _families(judge) & _families(writer):
        return "same family"
    provider = _provider(judge)
    return "same provider" if provider == _provider(writer) and provider not in ROUTERS else "independent"


def check_independence(judge: str, writer: str, *, allow_same_model: bool = False) -> Kinship:
    """Refuse a judge that is the writer's own model, and warn of one that is its kin.

    Raises ValueError for the same model, unless `allow_same_model`, which warns instead.
    """
    found = kinship(judge, writer)
    if found == "same model" and not allow_same_model:
        raise ValueError(
            f"{judge} cannot judge what {writer} wrote: they are the same model, which favours its own text. Take a "
            "judge of another maker, or say allow_same_model=True"
        )
    if found != "independent":
        warnings.warn(
            f"judge {judge} and writer {writer} are of the {found}, and kin judge each other kindly: take a judge of another "
            "maker, or see in its calibration how kind it is",
            stacklevel=3,
        )
    return found


def _provider(model: str) -> str:
    provider = model.partition(":")[0].lower()
    # `openai-chat`, `openai-responses`, `google-gla`, …: one company, several interfaces.
    return provider if provider in ROUTERS else provider.partition("-")[0]


def _name(model: str) -> str:
    """The model's bare name: without provider, maker, region, date and version suffix."""
    if model == "embedded":
        return "smollm2-135m-instruct"
    kind, colon, name = model.lower().partition(":")
    if kind == "simulated":
        return model.lower()
    name = (name if colon else kind).rpartition("/")[2]
    name = re.sub(r":(free|latest|\d+)$", "", name)
    name = re.sub(r"^([a-z-]+\.)+(?=[a-z])", "", name)  # us.anthropic.claude-…
    return re.sub(r"(-v\d+|-latest|@.*|-20\d\d-?\d\d-?\d\d)+$", "", name)


def _families(model: str) -> set[str]:
    """Everybody who had a hand in it: a distilled model is kin of both. Without the provider, which may only serve it."""
    kind, _, named = model.lower().partition(":")
    said = "" if kind == "simulated" else f"{named} {_name(model)}"
    return {maker for maker, names in FAMILIES.items() if re.search(rf"(?<![a-z])({names})", said)}
