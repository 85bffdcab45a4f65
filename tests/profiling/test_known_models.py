"""Public models are found as people spell them, and their figures agree with what others publish of them."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine.shapes import counted, model_flops
from profiling.hf_config import shape_of_config
from profiling.known_models import dense_shape_for, find_known, find_model, known_models
from profiling.workload import Mode, ModelShape, ModelTotals, Workload
from tests.profiling import hf_configs as configs

SHAPES = [known for known in known_models() if isinstance(known.model, ModelShape)]
TOTALS = [known for known in known_models() if isinstance(known.model, ModelTotals)]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Llama3-70B (12 layers)", "Llama3-70B"),
        ("Llama3-8B (assumed)", "Llama3-8B"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "Llama3-8B"),
        ("Llama-2-7b-chat-hf", "Llama2-7B"),
        ("Llama-3.3-70B-Instruct", "Llama3-70B"),
        ("llama 3 8b", "Llama3-8B"),
        ("DeepSeek-V3 (4 layers)", "DeepSeek-V3"),
        ("DeepSeek-R1-0528", "DeepSeek-V3"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2-7B"),
        ("Qwen3-235B-A22B-FP8", "Qwen3-235B-A22B"),
        ("Qwen3-30B-A3B-Instruct-2507", "Qwen3-30B-A3B"),
        ("Mistral-7B-Instruct-v0.3", "Mistral-7B-v0.3"),
        ("mistralai/Mixtral-8x7B-v0.1", "Mixtral-8x7B"),
        ("GPT3-175B", "GPT3-175B"),
        ("GPT2-124M", "GPT2-124M"),
        ("bigscience/bloom", "BLOOM-176B"),
        ("google/gemma-2-9b-it", "Gemma2-9B"),
        ("microsoft/Phi-3-mini-4k-instruct", "Phi3-mini"),
        ("bert-large-uncased", "BERT-large"),
        ("BioBERT(BERT-base)", "BERT-base"),
        ("ViT-Large", "ViT-L/16"),
        ("resnet50_v1.5", "ResNet-50"),
        ("InceptionV3", "Inception-v3"),
        ("SSD300", "SSD300-RN50"),
        ("NCF-ml20m", "NCF"),
        ("DLRM (model size large)", "DLRM-large"),
        ("SDXL (kohya sd-scripts)", "SDXL"),
        ("llama31_405b", "Llama3.1-405B"),
        ("Command R+", "Command-R-Plus-104B"),
        ("GPT-22B", "Megatron-22B"),
        ("Wan 2.2 14B (DiT video)", "Wan2.1-14B"),
        ("Transformer-XL-base", "Transformer-XL-base"),
    ],
)
def test_a_model_is_found_as_people_spell_it(name, key):
    assert find_known(name).key == key


@pytest.mark.parametrize(
    "name",
    [
        "",
        "?",
        "7B (dense; model not named in table)",
        "Llama-like-7B",
        "nanoGPT 4M",
        "Nemotron_3_Super",
        "OPT-27B",
        "x" * 9999,
    ],
)
def test_what_is_not_public_or_no_transformer_alone_is_not_guessed(name):
    assert find_model(name) is None


@given(st.text(max_size=60))
def test_any_text_is_a_name(text):
    found = find_model(text)
    assert found is None or isinstance(found, ModelShape | ModelTotals)


@pytest.mark.parametrize("known", known_models(), ids=lambda known: known.key)
def test_every_name_of_a_model_finds_it_and_has_a_source(known):
    for name in (known.key, *known.aliases, known.key.lower(), known.key.replace("-", "_")):
        assert find_known(name) is known
    assert known.source


@pytest.mark.parametrize("known", SHAPES, ids=lambda known: known.key)
def test_a_shape_has_the_parameters_that_its_makers_state(known):
    assert counted(known.model).parameters == pytest.approx(known.published_parameters, rel=0.03)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("Llama3-8B", configs.LLAMA3_8B),
        ("DeepSeek-V3", configs.DEEPSEEK_V3),
        ("GPT-NeoX-20B", configs.NEOX_20B),
        ("Gemma2-9B", configs.GEMMA2_9B),
        ("Gemma3-4B", configs.GEMMA3_4B),
        ("GLM4.5-Air", configs.GLM45_AIR),
        ("Llama4-Maverick", configs.LLAMA4_MAVERICK),
        ("ModernBERT-base", configs.MODERNBERT_BASE),
    ],
)
def test_the_table_and_the_public_configuration_say_the_same(name, config):
    table, file = find_model(name), shape_of_config(config)
    assert replace(table, sequence_length=1, tied_embeddings=None) == replace(
        file, sequence_length=1, tied_embeddings=None
    )


def test_a_cut_model_keeps_its_widths_and_its_share_of_windows():
    whole, cut = find_model("GPT-OSS-120B"), find_model("GPT-OSS-120B (12 layers)")
    assert (cut.layers, cut.windowed_layers, cut.hidden) == (12, 6, whole.hidden)
    deepseek = find_model("DeepSeek-V3 (2 layers)")
    assert (deepseek.layers, deepseek.dense_layers) == (2, 2)


@pytest.mark.parametrize(
    ("name", "flops", "parameters"),
    [
        # torchvision's table of models: GFLOPS there are multiply-adds.
        ("ResNet-18", 2 * 1.81e9, 11.69e6),
        ("ResNet-50", 2 * 4.09e9, 25.56e6),
        ("ResNet-152", 2 * 11.51e9, 60.19e6),
        ("VGG16", 2 * 15.47e9, 138.36e6),
        ("Inception-v3", 2 * 5.71e9, 27.16e6 - 3.33e6),
        ("DenseNet-121", 2 * 2.83e9, 7.98e6),
        ("ResNeXt101-32x8d", 2 * 16.41e9, 88.79e6),
        ("ConvNeXt-B", 2 * 15.36e9, 88.59e6),
        # 1905.11946, table 2.
        ("EfficientNet-B0", 2 * 0.39e9, 5.3e6),
        ("EfficientNet-B4", 2 * 4.2e9, 19e6),
        # github.com/ultralytics/yolov5 README: FLOPs at 640.
        ("YOLOv5s", 16.5e9, 7.2e6),
        ("YOLOv5l", 109.1e9, 46.5e6),
        # 1911.09070, table 2: 2.5 billion multiply-adds.
        ("EfficientDet-D0", 2 * 2.5e9, 3.9e6),
        # 2212.09748, table 4: 118.64 Gflops are multiply-adds.
        ("DiT-XL/2", 2 * 118.64e9, 675e6),
        # 2103.14030, table 1: multiply-adds.
        ("Swin-B", 2 * 15.4e9, 88e6),
    ],
)
def test_counted_totals_agree_with_published_ones(name, flops, parameters):
    totals = find_model(name)
    assert totals.flops_per_sample == pytest.approx(flops, rel=0.06)
    assert totals.parameters == pytest.approx(parameters, rel=0.12)


@pytest.mark.parametrize("known", TOTALS, ids=lambda known: known.key)
def test_totals_are_those_of_one_sample(known):
    totals = known.model
    for name in ("parameters", "flops_per_sample", "traffic_bytes_per_sample", "activation_bytes_per_sample"):
        assert math.isfinite(getattr(totals, name))
        assert getattr(totals, name) > 0
    assert totals.kernels_per_pass >= 10
    assert totals.activation_bytes_per_sample < totals.traffic_bytes_per_sample
    assert 0 <= totals.embedding_parameters < totals.parameters
    assert known.sample
    if totals.family != "recommender":  # each parameter outside of embedding tables works about once a sample
        assert totals.flops_per_sample > 0.04 * totals.parameters


@pytest.mark.parametrize(
    ("name", "forward"),
    [
        ("ViT-B/16", 2 * 17.56e9),  # torchvision's table, multiply-adds
        ("ViT-L/16", 2 * 61.55e9),
        ("BERT-large", 512 * (2 * 303e6 + 4 * 512 * 1024 * 24 + 2 * 1024 * 30522)),
    ],
)
def test_a_shape_gives_the_published_work_of_a_pass(name, forward):
    job = Workload(name=name, mode=Mode.TRAINING, precision="bf16", batch_per_step=1, model=find_model(name))
    assert model_flops(job, 1) / 3 == pytest.approx(forward, rel=0.03)


@given(st.floats(1e8, 1e12))
def test_a_size_alone_gives_a_shape_of_that_size_in_usual_proportions(parameters):
    shape = dense_shape_for(parameters)
    assert shape.parameters == parameters
    assert counted(replace(shape, parameters=None)).parameters == pytest.approx(parameters, rel=0.12)
    assert 70 < shape.hidden / shape.layers < 200
    assert shape.heads < 16 or shape.heads % 8 == 0


def test_seven_billion_look_like_llama_and_nothing_is_said_of_absurd_sizes():
    shape = dense_shape_for(7e9)
    assert (shape.layers, shape.hidden) == (33, 4096)
    assert dense_shape_for(1e3) is None
    assert dense_shape_for(math.inf) is None
