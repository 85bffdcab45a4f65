"""Making the classifier's model: fit and store. What it learns from is made elsewhere."""

import re
from collections.abc import Sequence
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np

from profiling.bottleneck import LABELS
from profiling.classifier import KernelGuesses, Model, Rows, input_rows
from profiling.features import Features

_REGULARISATION = 0.1
_GUESSES = 12
_SCHEMA = "schema.json"
_ADDRESS = re.compile(r'(?<="__id__": )\d+|\d+(?=\.npy")')


def inputs_of(features: Sequence[Features]) -> Rows:
    """The model's inputs for features with nothing missing, shape ``(len(features), len(INPUTS))``."""
    return np.concatenate([input_rows(one, ()) for one in features])


def fit(inputs: Rows, labels: Sequence[str], degree: int = 2) -> Model:
    """Logistic regression on the inputs and their products; ``labels`` from ``LABELS``, all three present.

    ``degree`` 1 leaves out the products.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    model = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(degree=degree, include_bias=False),
        StandardScaler(),
        LogisticRegression(C=_REGULARISATION, max_iter=2000),
    )
    return model.fit(inputs, np.array([LABELS.index(label) for label in labels]))


def kernel_guesses_from(features: Sequence[Features]) -> KernelGuesses:
    """Mean kernel durations in equal ratios, from (nearly) the shortest to (nearly) the longest that were seen."""
    known = [one.mean_kernel_s for one in features if one.mean_kernel_s is not None]
    return [float(mean_s) for mean_s in np.geomspace(*np.quantile(known, (0.01, 0.99)), _GUESSES)]


def stored(model: Model) -> bytes:
    """The model as the bytes of its file; the same model gives the same bytes."""
    from skops.io import dumps

    return _repeatable(dumps(model))


def _repeatable(content: bytes) -> bytes:
    """skops names parts by memory address and stamps them with the time; here they get numbers and no time."""
    with ZipFile(BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    schema = parts.pop(_SCHEMA).decode("utf-8")
    numbers = {address: str(place) for place, address in enumerate(dict.fromkeys(_ADDRESS.findall(schema)))}
    renamed = {f"{numbers[name.removesuffix('.npy')]}.npy": part for name, part in parts.items()}
    renamed[_SCHEMA] = _ADDRESS.sub(lambda found: numbers[found.group()], schema).encode("utf-8")
    target = BytesIO()
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for name in sorted(renamed):
            archive.writestr(ZipInfo(name), renamed[name], ZIP_DEFLATED)
    return target.getvalue()


def sklearn_version() -> str:
    import sklearn

    return sklearn.__version__
