"""`manage.py train_classifier`: make the classifier's model file, its description and its card."""

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
from advisor.training.card import Trained, model_card
from advisor.training.samples import make_samples
from advisor.training.scores import grouped_scores, host_agreement, model_scores, rule_scores
from profiling.bottleneck import LABELS
from profiling.classifier import DESCRIPTION_FILE, INPUTS, MODEL_FILE
from profiling.learning import fit, inputs_of, kernel_guesses_from, sklearn_version, stored

MODEL_FOLDER = Path(profiling.__file__).parent / "model"
CARD_FILE = "MODEL_CARD.md"
SEED, SAMPLES = 20_260_101, 9_000


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
        features, labels = [one.features for one in made], [one.label for one in made]
        inputs, guesses = inputs_of(features), kernel_guesses_from(features)
        model = fit(inputs, labels)
        content = stored(model)
        description = {
            "version": 1,
            "sha256": sha256(content).hexdigest(),
            "sklearn": sklearn_version(),
            "inputs": INPUTS,
            "labels": LABELS,
            "kernel_guesses": guesses,
            "training": {
                "seed": seed,
                "samples": samples,
                "engine": ENGINE_VERSION,
                "inputs_sha256": sha256(inputs.tobytes()).hexdigest(),
                "shares": {label: labels.count(label) / len(labels) for label in LABELS},
            },
        }
        fresh = make_samples(samples // 3, np.random.default_rng(seed + 1))
        trained = Trained(
            description=description,
            samples=made,
            grouped=grouped_scores(made),
            own=model_scores(model, guesses, fresh),
            rules=rule_scores(made),
            host_agreement=host_agreement(made),
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MODEL_FILE).write_bytes(content)
        (folder / DESCRIPTION_FILE).write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
        (folder / CARD_FILE).write_text(model_card(trained), encoding="utf-8")
        for split, values in trained.grouped.items():
            self.stdout.write(f"{split}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))
        self.stdout.write(f"written to {folder}")
