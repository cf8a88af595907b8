"""`python -m experiments.mathematics` writes the problems that ship, data/mathematics/problems.jsonl, anew."""

from .problems import SHIPPED, SHIPPED_COUNTS, SHIPPED_SEED, generate, save

if __name__ == "__main__":
    SHIPPED.parent.mkdir(exist_ok=True)
    save(
        (one for split, count in SHIPPED_COUNTS.items() for one in generate(split, count, SHIPPED_SEED)),
        SHIPPED,
    )
    print(f"written to {SHIPPED}; data/SHA256SUMS needs its new checksum")
