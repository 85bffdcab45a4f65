"""A Hugging Face ``config.json`` as a model shape: an untrusted upload, read strictly and only where it is known.

Each quantity has one list of names under which families write it (``_NAMES``); what a file leaves out comes from
``hf_families``. Experts, latent attention and windows have their own modules. A type that we do not know is read by
the usual names, with a note. Refusals are ``WorkloadError`` with the place in the file.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from profiling.field_readers import whole_field
from profiling.hf_experts import experts_of
from profiling.hf_families import USUAL_VALUES, Family, Kind, family_of
from profiling.hf_windows import windows_of
from profiling.workload import ModelShape
from profiling.workload_checks import check_model
from profiling.workload_errors import WorkloadCode, WorkloadError

LARGEST_CONFIG = 1_000_000
_USUAL_SEQUENCE = 4096
_USUAL_CLASSES = 1000


class ConfigNote(StrEnum):
    """What a reader of the shape should know."""

    READ_GENERICALLY = "config_read_generically"
    OTHER_PARTS_LEFT_OUT = "config_other_parts_left_out"
    SPARSE_ATTENTION_AS_WINDOW = "config_sparse_attention_as_window"
    SEQUENCE_ASSUMED = "config_sequence_assumed"
    EXTRA_PREDICTION_LEFT_OUT = "config_extra_prediction_left_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigReading:
    """``weight_bits``: where the file says that its weights are quantised."""

    shape: ModelShape
    model_type: str
    notes: tuple[ConfigNote, ...]
    weight_bits: int | None = None


def parse_config(data: bytes) -> Mapping[str, Any]:
    """The bytes of an uploaded file as a JSON object."""
    if len(data) > LARGEST_CONFIG:
        raise WorkloadError(WorkloadCode.TOO_LARGE, "", most=LARGEST_CONFIG)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise WorkloadError(WorkloadCode.NOT_JSON, "") from None
    if not isinstance(document, dict):
        raise WorkloadError(WorkloadCode.NOT_AN_OBJECT, "")
    return document


def shape_of_config(document: Mapping[str, Any], *, sequence_length: int | None = None) -> ModelShape:
    """The shape that a configuration describes. Raises WorkloadError."""
    return read_config(document, sequence_length=sequence_length).shape


def read_config(document: Any, *, sequence_length: int | None = None) -> ConfigReading:
    """The shape with what else the file tells. ``sequence_length``: tokens of the job; the file only knows the most."""
    if not isinstance(document, Mapping):
        raise WorkloadError(WorkloadCode.NOT_AN_OBJECT, "")
    config, prefix = _language_part(document)
    model_type = _model_type(config, document)
    family = family_of(model_type)
    _refuse(family.kind, model_type, config, document)
    stated = {name: value for name, value in config.items() if value is not None}
    read = _Fields({**USUAL_VALUES.get(model_type, {}), **stated}, prefix)
    shape = _shape(read, family, model_type, document, sequence_length)
    try:
        check_model(shape)
    except WorkloadError as error:
        raise _in_the_file(error, read) from None
    return ConfigReading(
        shape=shape,
        model_type=model_type,
        notes=_notes(read, family, prefix, sequence_length),
        weight_bits=_weight_bits(document),
    )


_NAMES: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "n_embed", "dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "vocabulary": ("padded_vocab_size", "vocab_size"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "attn_config/kv_n_heads"),
    "ffn": (
        "intermediate_size",
        "n_inner",
        "ffn_dim",
        "ffn_hidden_size",
        "hidden_dim",
        "d_ff",
        "ffn_config/ffn_hidden_size",
    ),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim"),
    "positions": (
        "max_position_embeddings",
        "n_positions",
        "max_sequence_length",
        "max_seq_len",
        "seq_length",
        "model_max_length",
        "n_ctx",
    ),
}
_LAYERS, _WIDTH, _HEADS = whole_field(1, 10_000), whole_field(8, 1_000_000), whole_field(1, 10_000)
_VOCABULARY, _TOKENS = whole_field(2, 100_000_000), whole_field(1, 100_000_000)
_FFN = whole_field(1, 10_000_000)


class _Fields:
    """Values of the configuration by our names; ``a/b`` looks into an object."""

    def __init__(self, config: Mapping[str, Any], prefix: str) -> None:
        self.config = config
        self.prefix = prefix

    def raw(self, name: str) -> Any:
        outer, _, inner = name.partition("/")
        value = self.config.get(outer)
        return value if not inner else value.get(inner) if isinstance(value, Mapping) else None

    def whole(self, name: str, reader: Any = _FFN) -> int | None:
        """The first of the names of this quantity that the file has."""
        for spelling in _NAMES.get(name, (name,)):
            value = self.raw(spelling)
            if value is not None and value is not False:
                number: int = reader(value, f"{self.prefix}/{spelling}")
                return number
        return None

    def spelled(self, name: str) -> str:
        """The name that the file has for this quantity; ours where it has none."""
        ours = {"ffn_hidden": "ffn", "sequence_length": "positions"}.get(name, name)
        return next((one for one in _NAMES.get(ours, ()) if self.raw(one) is not None), name)

    def needed(self, name: str, reader: Any) -> int:
        value = self.whole(name, reader)
        if value is None:
            raise WorkloadError(WorkloadCode.NOT_A_TRANSFORMER, self.prefix, missing=_NAMES[name][0])
        return value

    def flag(self, name: str) -> bool:
        return self.raw(name) is True


def _in_the_file(error: WorkloadError, read: _Fields) -> WorkloadError:
    """A contradiction between values of the shape, by the names that the file has for them."""
    params = {name: read.spelled(str(value)) for name, value in error.params.items() if name != "field"}
    return WorkloadError(error.code, f"{read.prefix}/{read.spelled(error.pointer.rpartition('/')[2])}", **params)


def _language_part(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The language model of a model that sees or hears as well."""
    for name in ("text_config", "llm_config", "language_config"):
        part = document.get(name)
        if isinstance(part, Mapping) and "hidden_size" not in document:
            return part, f"/{name}"
    return document, ""


def _model_type(config: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    for source in (config, document):
        value = source.get("model_type")
        if isinstance(value, str) and value.strip().isprintable() and value.strip():
            return value.strip()[:60]
    return "?"


_STATE_SPACE_FIELDS = ("hybrid_override_pattern", "mamba_d_state", "ssm_state_size", "linear_num_value_heads")
_NO_ATTENTION_LAYERS = ("linear_attention", "mamba", "recurrent", "conv", "ssm")


def _refuse(kind: Kind, model_type: str, config: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    layers = config.get("layer_types")
    without = isinstance(layers, list) and any(layer in _NO_ATTENTION_LAYERS for layer in layers)
    if kind is Kind.STATE_SPACE or without or any(config.get(name) for name in _STATE_SPACE_FIELDS):
        raise WorkloadError(WorkloadCode.STATE_SPACE_MODEL, "/model_type", model_type=model_type)
    if kind is Kind.ENCODER_DECODER or document.get("is_encoder_decoder") is True:
        raise WorkloadError(WorkloadCode.ENCODER_DECODER_MODEL, "/model_type", model_type=model_type)
    if kind is Kind.COMPRESSED_ATTENTION or config.get("compress_ratios"):
        raise WorkloadError(WorkloadCode.COMPRESSED_ATTENTION, "/model_type", model_type=model_type)


def _shape(
    read: _Fields, family: Family, model_type: str, document: Mapping[str, Any], sequence_length: int | None
) -> ModelShape:
    layers = read.needed("layers", _LAYERS)
    hidden = read.needed("hidden", _WIDTH)
    heads = read.needed("heads", _HEADS)
    images = family.kind is Kind.IMAGE_ENCODER
    experts = experts_of(read, layers)
    windows = windows_of(read, model_type, layers)
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        vocabulary=_classes(read) if images else read.needed("vocabulary", _VOCABULARY),
        sequence_length=sequence_length or (_patches(read) if images else _usual_sequence(read)),
        kv_heads=_kv_heads(read, heads),
        ffn_hidden=_ffn(read, model_type, hidden, gated=family.gated_mlp),
        gated_mlp=family.gated_mlp,
        causal=family.kind is Kind.DECODER,
        tied_embeddings=_tied(read, document, family),
        **_head_widths(read),
        **experts,
        **windows,
    )


def _kv_heads(read: _Fields, heads: int) -> int | None:
    """None where each head has keys of its own, and with latent attention, whose width says it all."""
    if read.raw("kv_lora_rank"):
        return None
    one = read.flag("multi_query") and not read.flag("new_decoder_architecture")
    stated = None if read.raw("multi_query_attention") is False else read.whole("kv_heads", _HEADS)
    kv_heads = 1 if one else stated
    return None if kv_heads == heads else kv_heads


def _head_widths(read: _Fields) -> dict[str, int | None]:
    latent = read.whole("kv_lora_rank", _WIDTH)
    if latent is None:
        return {"head_dim": read.whole("head_dim", _WIDTH)}
    positional = read.whole("qk_rope_head_dim", _FFN) or 0
    plain = read.whole("qk_nope_head_dim", _FFN)
    if plain is None:
        raise WorkloadError(WorkloadCode.MISSING_FIELD, f"{read.prefix}/qk_nope_head_dim")
    return {
        "head_dim": plain + positional,
        "value_head_dim": read.whole("v_head_dim", _FFN) or plain,
        "kv_latent": latent + positional,
        "query_latent": read.whole("q_lora_rank", _WIDTH) if read.raw("q_lora_rank") else None,
    }


def _ffn(read: _Fields, model_type: str, hidden: int, *, gated: bool) -> int | None:
    if model_type in ("llama4", "llama4_text"):
        return read.whole("intermediate_size_mlp", _FFN)
    width = read.whole("ffn", _FFN)
    if model_type == "qwen" and width is not None:
        return width // 2  # its file gives both halves of the gated product
    if width is None and not gated:
        return (read.whole("expansion_ratio", _FFN) or 4) * hidden
    return width


def _tied(read: _Fields, document: Mapping[str, Any], family: Family) -> bool:
    stated = read.raw("tie_word_embeddings")
    stated = document.get("tie_word_embeddings") if stated is None else stated
    return stated if isinstance(stated, bool) else family.tied_embeddings


def _usual_sequence(read: _Fields) -> int:
    return min(read.whole("positions", _TOKENS) or _USUAL_SEQUENCE, _USUAL_SEQUENCE)


def _classes(read: _Fields) -> int:
    labels = read.raw("id2label")
    return max(2, len(labels)) if isinstance(labels, Mapping) else _USUAL_CLASSES


def _patches(read: _Fields) -> int:
    """Tokens of an image: its patches and the class token."""
    image, patch = (read.whole(name, _FFN) for name in ("image_size", "patch_size"))
    if not image or not patch or patch > image:
        raise WorkloadError(WorkloadCode.MISSING_FIELD, f"{read.prefix}/image_size")
    return (image // patch) ** 2 + 1


def _notes(read: _Fields, family: Family, prefix: str, sequence_length: int | None) -> tuple[ConfigNote, ...]:
    happened = {
        ConfigNote.READ_GENERICALLY: not family.known,
        ConfigNote.OTHER_PARTS_LEFT_OUT: bool(prefix),
        ConfigNote.SPARSE_ATTENTION_AS_WINDOW: read.raw("index_topk") is not None,
        ConfigNote.SEQUENCE_ASSUMED: sequence_length is None and family.kind is not Kind.IMAGE_ENCODER,
        ConfigNote.EXTRA_PREDICTION_LEFT_OUT: bool(read.raw("num_nextn_predict_layers")),
    }
    return tuple(note for note, is_so in happened.items() if is_so)


_BITS_OF_METHOD = {"fp8": 8, "mxfp4": 4, "fbgemm_fp8": 8, "nvfp4": 4}


def _weight_bits(document: Mapping[str, Any]) -> int | None:
    quantisation = document.get("quantization_config")
    if not isinstance(quantisation, Mapping):
        return None
    bits = quantisation.get("bits")
    if isinstance(bits, int) and not isinstance(bits, bool) and 1 <= bits <= 16:
        return bits
    if quantisation.get("load_in_4bit") is True:
        return 4
    method = quantisation.get("quant_method")
    return _BITS_OF_METHOD.get(method) if isinstance(method, str) else None
