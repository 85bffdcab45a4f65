"""Every preset is a job that the workload document can say, and that the engine can plan."""

import pytest

from profiling.known_models import find_model
from profiling.presets import PRESETS, preset_workload
from profiling.workload import Mode
from profiling.workload_json import workload_from_json, workload_to_json

GROUPS = {
    "llm-training",
    "moe-training",
    "fine-tuning",
    "encoder",
    "vision",
    "diffusion",
    "recommender",
    "scientific",
    "speech",
    "serving",
}


def test_there_are_more_than_twenty_of_all_kinds():
    assert len(PRESETS) > 20
    assert {preset.group for preset in PRESETS} == GROUPS
    assert len({preset.key for preset in PRESETS}) == len({preset.title for preset in PRESETS}) == len(PRESETS)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.key)
def test_a_preset_is_a_workload_document(preset):
    job = preset_workload(preset.key)
    assert workload_from_json(workload_to_json(job)) == job
    assert preset.source
    model = find_model(preset.model)
    assert job.totals == model or job.model.layers == model.layers


def test_a_preset_says_what_is_done_to_the_model():
    qlora = preset_workload("qlora-70b")
    assert (qlora.lora_rank, qlora.weight_bits, qlora.model.sequence_length) == (64, 4, 2048)
    answers = preset_workload("serve-70b-answers")
    assert answers.mode is Mode.INFERENCE
    assert answers.output_tokens > answers.model.sequence_length
    assert preset_workload("resnet50-augmented").input_pipeline.cpu_s_per_sample == 0.02
    assert preset_workload("long-context-8b").model.sequence_length == 128 * 1024


def test_an_unknown_preset_is_an_error():
    with pytest.raises(KeyError):
        preset_workload("no such job")
