"""`manage.py evaluate_classifier`: the scores of the stored classifier on samples that it was not trained on."""

import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import BaseCommand, CommandError

from advisor.training.replays import compared, store
from advisor.training.samples import make_samples
from advisor.training.scores import grouped_scores, model_scores, rule_scores, sure_scores
from profiling.stored_model import ModelRefused, description, loaded_model, model_sha256

SEED_AFTER_TRAINING, SAMPLES = 1_000, 3_000


class Command(BaseCommand):
    help = "Judge the stored classifier on fresh samples: all, by family, unseen groups, and rules of thumb beside it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--seed", type=int, help="default: one that training did not use")
        parser.add_argument("--samples", type=int, default=SAMPLES)
        parser.add_argument("--json", action="store_true", dest="as_json")
        parser.add_argument(
            "--captures",
            type=Path,
            help="instead: compare with the replays of the captures in this folder, and keep that",
        )

    def handle(self, *, seed: int | None, samples: int, as_json: bool, captures: Path | None, **_: Any) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"  # many small fits, and threads only wait for each other
        try:
            model = loaded_model()
        except ModelRefused as refused:
            raise CommandError(str(refused), returncode=2) from refused
        if captures is not None:
            self._compare(captures)
            return
        seed = seed if seed is not None else int(description()["training"]["seed"]) + SEED_AFTER_TRAINING
        fresh = make_samples(samples, np.random.default_rng(seed))
        document = {
            "model_sha256": model_sha256(),
            "seed": seed,
            "samples": samples,
            "stored": model_scores(model, fresh),
            "sure": sure_scores(model, fresh),
            "refitted": grouped_scores(fresh),
            "rules_macro_f1": rule_scores(fresh),
        }
        self.stdout.write(json.dumps(document) if as_json else json.dumps(document, indent=1))

    def _compare(self, folder: Path) -> None:
        if not folder.is_dir():
            raise CommandError(f"{folder} is not a folder; name one with captures in it.", returncode=2)
        rows = list(compared(folder))
        if not rows:
            raise CommandError(f"No capture in {folder} can be replayed; what was kept before stays.", returncode=2)
        store(rows)
        for row in rows:
            sure = " (sure)" if row.sure == "yes" else ""
            self.stdout.write(f"{row.agreement:10} {row.classifier}{sure}, replay: {row.replay}  {row.capture}")
        self.stdout.write(f"{len(rows)} captures can be replayed; run train_classifier to put this into the card")
