"""A config.json becomes the shape that its model has, or is refused with a sentence."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.shapes import counted
from profiling.hf_config import LARGEST_CONFIG, ConfigNote, parse_config, read_config, shape_of_config
from profiling.workload_errors import WorkloadCode, WorkloadError
from profiling.workload_messages import CONFIG_NOTES, workload_sentence
from tests.profiling import hf_configs as configs


@pytest.mark.parametrize(("config", "published"), configs.PUBLISHED.values(), ids=configs.PUBLISHED)
def test_the_shape_has_the_parameters_that_the_makers_state(config, published):
    assert counted(shape_of_config(config)).parameters == pytest.approx(published, rel=0.02)


@pytest.mark.parametrize(
    ("config", "window", "windowed"),
    [
        (configs.GPT_OSS_120B, 128, 18),
        (configs.GEMMA2_9B, 4096, 21),
        (configs.GEMMA3_4B, 1024, 29),
        (configs.MODERNBERT_BASE, 128, 14),
        (configs.LLAMA4_MAVERICK, 8192, 36),
        (configs.PHI3_MINI, 2047, 32),
        (configs.QWEN15_MOE, None, 0),
        (configs.MIXTRAL, None, 0),
        (configs.DEEPSEEK_V3 | {"model_type": "deepseek_v32", "index_topk": 2048}, 2048, 61),
    ],
)
def test_windows_lie_in_as_many_layers_as_the_model_has(config, window, windowed):
    shape = shape_of_config(config)
    assert (shape.attention_window, shape.windowed_layers) == (window, windowed)


def test_latent_attention_keeps_512_values_and_64_of_position():
    shape = shape_of_config(configs.DEEPSEEK_V3)
    assert (shape.kv_latent, shape.query_latent, shape.head_dim, shape.value_head_dim) == (576, 1536, 192, 128)


def test_encoders_see_both_ways_and_images_are_patches():
    assert not shape_of_config(configs.BERT_LARGE).causal
    assert shape_of_config(configs.VIT_BASE).sequence_length == 14 * 14 + 1


def test_the_sequence_is_the_callers_or_ours_with_a_note():
    assert shape_of_config(configs.LLAMA3_8B, sequence_length=32_768).sequence_length == 32_768
    ours = read_config(configs.LLAMA3_8B)
    assert ours.shape.sequence_length == 4096
    assert ConfigNote.SEQUENCE_ASSUMED in ours.notes
    assert ConfigNote.SEQUENCE_ASSUMED not in read_config(configs.LLAMA3_8B, sequence_length=1).notes


def test_an_unknown_type_with_the_usual_names_is_read_and_said_to_be_unknown():
    reading = read_config(configs.LLAMA3_8B | {"model_type": "something_new"})
    assert reading.shape == shape_of_config(configs.LLAMA3_8B)
    assert ConfigNote.READ_GENERICALLY in reading.notes
    assert ConfigNote.READ_GENERICALLY not in read_config(configs.LLAMA3_8B).notes


@pytest.mark.parametrize(
    ("quantised", "bits"),
    [({"bits": 4, "quant_method": "gptq"}, 4), ({"quant_method": "fp8"}, 8), ({"load_in_4bit": True}, 4), ({}, None)],
)
def test_quantised_weights_are_told(quantised, bits):
    assert read_config(configs.LLAMA3_8B | {"quantization_config": quantised}).weight_bits == bits


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"model_type": "mamba", "hidden_size": 768}, WorkloadCode.STATE_SPACE_MODEL),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*"}, WorkloadCode.STATE_SPACE_MODEL),
        (configs.LLAMA3_8B | {"layer_types": ["linear_attention"] * 32}, WorkloadCode.STATE_SPACE_MODEL),
        ({"model_type": "t5", "d_model": 512}, WorkloadCode.ENCODER_DECODER_MODEL),
        (configs.LLAMA3_8B | {"is_encoder_decoder": True}, WorkloadCode.ENCODER_DECODER_MODEL),
        ({"model_type": "deepseek_v4"}, WorkloadCode.COMPRESSED_ATTENTION),
        ({"model_type": "resnet"}, WorkloadCode.NOT_A_TRANSFORMER),
        ({}, WorkloadCode.NOT_A_TRANSFORMER),
        (configs.LLAMA3_8B | {"hidden_size": "4096"}, WorkloadCode.NOT_A_WHOLE_NUMBER),
        (configs.LLAMA3_8B | {"hidden_size": -1}, WorkloadCode.OUT_OF_RANGE),
        (configs.LLAMA3_8B | {"num_hidden_layers": 10**9}, WorkloadCode.OUT_OF_RANGE),
        (configs.LLAMA3_8B | {"num_attention_heads": 33}, WorkloadCode.NOT_DIVISIBLE),
        (configs.MIXTRAL | {"num_experts_per_tok": 9}, WorkloadCode.EXCEEDS),
        (configs.MIXTRAL | {"num_experts_per_tok": None}, WorkloadCode.NEEDS_FIELD),
        (configs.DEEPSEEK_V3 | {"qk_nope_head_dim": None}, WorkloadCode.MISSING_FIELD),
        (configs.VIT_BASE | {"patch_size": 300}, WorkloadCode.MISSING_FIELD),
        ([], WorkloadCode.NOT_AN_OBJECT),
    ],
)
def test_what_one_shape_does_not_describe_is_refused_with_a_sentence(config, code):
    with pytest.raises(WorkloadError) as refused:
        read_config(config)
    assert refused.value.code is code
    assert "%(" not in workload_sentence(refused.value)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{", WorkloadCode.NOT_JSON),
        (b"\xff\xfe\x00", WorkloadCode.NOT_JSON),
        (b"[" * 100_000, WorkloadCode.NOT_JSON),
        (b'{"a": ' + b"9" * 5000 + b"}", WorkloadCode.NOT_JSON),
        (b"[1]", WorkloadCode.NOT_AN_OBJECT),
        (b" " * (LARGEST_CONFIG + 1), WorkloadCode.TOO_LARGE),
    ],
)
def test_bytes_that_are_no_configuration_are_refused(data, code):
    with pytest.raises(WorkloadError) as refused:
        parse_config(data)
    assert refused.value.code is code


def test_bytes_become_the_configuration():
    assert shape_of_config(parse_config(json.dumps(configs.LLAMA3_8B).encode())).layers == 32


@pytest.mark.parametrize(
    ("changes", "pointer", "sentence"),
    [
        ({"hidden_size": 4095}, "/hidden_size", "hidden_size must be a multiple of num_attention_heads."),
        (
            {"num_key_value_heads": 7},
            "/num_attention_heads",
            "num_attention_heads must be a multiple of num_key_value_heads.",
        ),
    ],
)
def test_contradictions_are_named_as_the_file_names_them(changes, pointer, sentence):
    config = {name: value for name, value in configs.LLAMA3_8B.items() if name != "head_dim"} | changes
    with pytest.raises(WorkloadError) as refused:
        read_config(config)
    assert (refused.value.pointer, workload_sentence(refused.value)) == (pointer, sentence)
    with pytest.raises(WorkloadError) as inside:
        read_config({"text_config": config})
    assert inside.value.pointer == f"/text_config{pointer}"


def test_a_width_of_zero_says_that_there_is_none():
    assert shape_of_config(configs.PHI3_MINI | {"sliding_window": 0}).attention_window is None
    assert shape_of_config(configs.DEEPSEEK_V3 | {"q_lora_rank": 0}).query_latent is None


_anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300)
@given(
    base=st.sampled_from([config for config, _ in configs.PUBLISHED.values()]),
    changes=st.lists(st.tuples(st.integers(0, 30), _anything), max_size=3),
)
def test_a_damaged_configuration_is_read_or_refused_never_worse(base, changes):
    config = dict(base)
    for place, value in changes:
        config[sorted(config)[place % len(config)]] = value
    try:
        shape = shape_of_config(config)
    except WorkloadError as refused:
        assert "%(" not in workload_sentence(refused)
    else:
        assert 1 <= shape.layers <= 10_000
        assert counted(shape).parameters > 0


def test_every_note_has_a_sentence():
    assert set(CONFIG_NOTES) == set(ConfigNote)
