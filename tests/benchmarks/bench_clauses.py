"""What prefix cache and parallel slots are worth: a `clauses` trial against the plain use of the same model.

Plain use puts the same prompts under the same constraints to the same weights, one at a time, and computes every
prompt from its first token. Both sides take turns within one process, so that they meet the same machine; neither
counts loading. A trial's puzzle has four people unless --people says otherwise.
"""

import argparse
import asyncio
import statistics
import time
from typing import Any

from experiments.knights.arms import make
from experiments.knights.puzzles import Puzzle, generate
from loopkit.models import resolve
from loopkit.models.embedded import EmbeddedModel


class Recorder:
    """Passes requests on to llama.cpp and keeps them with their answers."""

    def __init__(self, server: Any) -> None:
        self.server, self.asked = server, []

    def handle_chat_completions(self, payload: dict[str, Any]) -> dict[str, Any]:
        reply = self.server.handle_chat_completions(dict(payload))
        self.asked.append((payload, said(reply)))
        return reply


class Recorded(EmbeddedModel):
    """The embedded model as it is, listened to."""

    def __init__(self) -> None:
        super().__init__()
        self.recorder = Recorder(super().server())

    def server(self) -> Any:
        return self.recorder


def said(reply: dict[str, Any]) -> str:
    if "error" in reply:
        raise SystemExit(f"llama.cpp: {reply['error']}")
    return reply["choices"][0]["message"]["content"] or ""


def plain_server(model: EmbeddedModel) -> Any:
    """The same weights and threads in one slot, without a place to put prompts aside."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model.path)
    params.n_ctx, params.n_parallel = model.context, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = model.threads
    params.cache_ram_mib, params.n_gpu_layers, params.verbosity = 0, 0, -1
    return xllamacpp.Server(params)


async def play_ours(puzzle: Puzzle, model: Any) -> float:
    started = time.perf_counter()
    await make("clauses", puzzle, model, max_iterations=3, max_tokens=250).run(puzzle.quiz)
    return time.perf_counter() - started


def play_plain(server: Any, payloads: list[dict[str, Any]]) -> tuple[float, list[str]]:
    started = time.perf_counter()
    answers = [
        said(server.handle_chat_completions(payload | {"cache_prompt": False})) for payload in payloads
    ]
    return time.perf_counter() - started, answers


async def compare(people: int, trials: int, seed: int) -> None:
    embedded = Recorded()
    model, server = resolve(embedded), plain_server(embedded)
    warm, *puzzles = generate(people, seed, trials + 1)
    await play_ours(warm, model)
    play_plain(server, [embedded.recorder.asked[0][0]])
    ours, plain, requests, different = [], [], 0, 0
    for puzzle in puzzles:
        embedded.recorder.asked.clear()
        ours.append(await play_ours(puzzle, model))
        asked = list(embedded.recorder.asked)
        seconds, answers = play_plain(server, [payload for payload, _ in asked])
        plain.append(seconds)
        requests += len(asked)
        different += sum(one != other for (_, one), other in zip(asked, answers, strict=True))
    print(f"{trials} trials of {people} people, {requests / trials:.1f} requests each,")
    print(f"{embedded.threads} threads, {embedded.slots} slots; {different} of {requests} answers differ")
    for name, seconds in (("clauses arm", ours), ("plain use", plain)):
        low, high = min(seconds), max(seconds)
        print(f"{name:12} median {statistics.median(seconds):7.3f} s a trial ({low:.3f} to {high:.3f})")
    print(f"ratio        {statistics.median(plain) / statistics.median(ours):7.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=10, help="puzzles to play (default: 10)")
    parser.add_argument("--people", type=int, default=4, choices=range(2, 9), help="in a puzzle (default: 4)")
    parser.add_argument("--seed", type=int, default=1, help="of the puzzles (default: 1)")
    args = parser.parse_args()
    if args.trials < 1:
        parser.error(f"--trials must be >= 1, got {args.trials}")
    asyncio.run(compare(args.people, args.trials, args.seed))


if __name__ == "__main__":
    main()
