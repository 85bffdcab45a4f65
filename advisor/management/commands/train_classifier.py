"""`manage.py train_classifier`: make the classifier's model file and its card."""

import json
import os
from argparse import ArgumentParser
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import BaseCommand

import profiling
from advisor.engine.version import ENGINE_VERSION
from advisor.training.card import CARD_FILE, Trained, model_card
from advisor.training.peers import peer_scores
from advisor.training.replays import stored_agreement
from advisor.training.samples import make_samples
from advisor.training.scores import grouped_scores, model_scores, rule_scores, sure_scores, trained_on
from profiling.bottleneck import LABELS
from profiling.learning import inputs_of, sklearn_version
from profiling.stored_model import MODEL_FILE, model_document

MODEL_FOLDER = Path(profiling.__file__).parent / "model"
SEED, SAMPLES = 20_261_201, 12_000


class Command(BaseCommand):
    help = "Train the bottleneck classifier on steps that the engine predicts; the same seed gives the same model."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--seed", type=int, default=SEED)
        parser.add_argument("--samples", type=int, default=SAMPLES)
        parser.add_argument("--folder", type=Path, default=MODEL_FOLDER, help="where to write (profiling/model)")

    def handle(self, *, seed: int, samples: int, folder: Path, **_: Any) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"  # the fit is small, and threads only wait for each other
        made = make_samples(samples, np.random.default_rng(seed))
        model, labels = trained_on(made), [one.label for one in made]
        inputs = b"".join(rows.tobytes() for rows in inputs_of([one.features for one in made]))
        training = {
            "seed": seed,
            "samples": samples,
            "engine": ENGINE_VERSION,
            "sklearn": sklearn_version(),
            "inputs_sha256": sha256(inputs).hexdigest(),
            "shares": {label: labels.count(label) / len(labels) for label in LABELS},
        }
        document = model_document(model, training)
        fresh = make_samples(samples // 3, np.random.default_rng(seed + 1))
        trained = Trained(
            document=document,
            samples=made,
            grouped=grouped_scores(made),
            own=model_scores(model, fresh),
            sure=sure_scores(model, fresh),
            peers=peer_scores(made),
            rules=rule_scores(made),
            replays=stored_agreement(),
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MODEL_FILE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        (folder / CARD_FILE).write_text(model_card(trained), encoding="utf-8")
        for split, values in trained.grouped.items():
            self.stdout.write(f"{split}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))
        self.stdout.write(f"written to {folder}")
