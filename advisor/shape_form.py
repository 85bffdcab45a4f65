"""The shape of a transformer, as a form asks for it."""

from collections.abc import Mapping

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from advisor.fields import Amount, WholeNumber
from advisor.form_parts import Section, ask_for
from profiling.workload import ModelShape

BILLION = 1e9
TIED = {"yes": True, "no": False}
MAIN = (
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "ffn_hidden",
    "vocabulary",
    "sequence_length",
    "parameters_billions",
    "gated_mlp",
    "causal",
)
EXPERTS = ("experts", "experts_per_token", "expert_ffn", "shared_expert_ffn", "dense_layers")
ATTENTION = (
    "head_dim",
    "value_head_dim",
    "kv_latent",
    "query_latent",
    "attention_window",
    "windowed_layers",
    "tied_embeddings",
)


class ShapeForm(forms.Form):
    """A transformer's shape. ``shape`` is the ModelShape, or None when the section was left empty."""

    layers = WholeNumber(label=_("Layers"), low=1, high=1000, required=False)
    hidden = WholeNumber(
        label=_("Hidden size"), low=8, high=200_000, required=False, help_text=_("hidden_size in config.json")
    )
    heads = WholeNumber(label=_("Attention heads"), low=1, high=2000, required=False)
    kv_heads = WholeNumber(
        label=_("Key and value heads"),
        low=1,
        high=2000,
        required=False,
        help_text=_("Empty: as many as attention heads"),
    )
    ffn_hidden = WholeNumber(
        label=_("MLP size"), low=1, high=1_000_000, required=False, help_text=_("intermediate_size in config.json")
    )
    vocabulary = WholeNumber(label=_("Vocabulary (tokens)"), low=2, high=10_000_000, required=False)
    sequence_length = WholeNumber(
        label=_("Sequence length (tokens)"),
        low=1,
        high=10_000_000,
        required=False,
        help_text=_("Of a training sample; when serving, of the prompt"),
    )
    parameters_billions = Amount(
        label=_("Parameters (billions)"),
        low=0.000_001,
        high=100_000,
        required=False,
        help_text=_("Empty: counted from the shape"),
    )
    gated_mlp = forms.BooleanField(label=_("Gated MLP (SwiGLU, as in Llama and Qwen)"), required=False, initial=True)
    causal = forms.BooleanField(
        label=_("Causal attention (a decoder; not BERT or a vision transformer)"), required=False, initial=True
    )

    experts = WholeNumber(
        label=_("Experts in a layer"), low=1, high=100_000, required=False, help_text=_("Without the shared ones")
    )
    experts_per_token = WholeNumber(label=_("Experts for each token"), low=1, high=100_000, required=False)
    expert_ffn = WholeNumber(
        label=_("Size of an expert"),
        low=1,
        high=1_000_000,
        required=False,
        help_text=_("moe_intermediate_size in config.json"),
    )
    shared_expert_ffn = WholeNumber(
        label=_("Size of the shared experts"), low=0, high=1_000_000, required=False, help_text=_("All together")
    )
    dense_layers = WholeNumber(label=_("First layers without experts"), low=0, high=1000, required=False)

    head_dim = WholeNumber(
        label=_("Width of a head"),
        low=1,
        high=100_000,
        required=False,
        help_text=_("Empty: hidden size over attention heads"),
    )
    value_head_dim = WholeNumber(
        label=_("Width of a value head"), low=1, high=100_000, required=False, help_text=_("Where it differs")
    )
    kv_latent = WholeNumber(
        label=_("Latent width of keys and values"),
        low=1,
        high=1_000_000,
        required=False,
        help_text=_("Multi-head latent attention: kv_lora_rank + qk_rope_head_dim"),
    )
    query_latent = WholeNumber(
        label=_("Latent width of queries"), low=1, high=1_000_000, required=False, help_text=_("q_lora_rank")
    )
    attention_window = WholeNumber(label=_("Sliding window (tokens)"), low=1, high=10_000_000, required=False)
    windowed_layers = WholeNumber(label=_("Layers with a sliding window"), low=0, high=1000, required=False)
    tied_embeddings = forms.ChoiceField(
        label=_("Embedding and output share weights"),
        required=False,
        choices=[("", _("as usual for the MLP's kind")), ("yes", _("yes")), ("no", _("no"))],
    )

    NEEDED = ("layers", "hidden", "heads", "vocabulary", "sequence_length")
    _PLACEHOLDERS: Mapping[str, str] = {
        "layers": "32",
        "hidden": "4096",
        "heads": "32",
        "kv_heads": "8",
        "ffn_hidden": "14336",
        "vocabulary": "128256",
        "sequence_length": "4096",
        "parameters_billions": "8.03",
    }

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        for name, example in self._PLACEHOLDERS.items():
            self.fields[name].widget.attrs["placeholder"] = example

    @property
    def expert_section(self) -> Section:
        return Section.of(self, *EXPERTS)

    @property
    def attention_section(self) -> Section:
        return Section.of(self, *ATTENTION)

    @property
    def shape(self) -> ModelShape | None:
        data = self.cleaned_data
        if data.get("layers") is None:
            return None
        plain = ("layers", "hidden", "heads", "kv_heads", "ffn_hidden", "vocabulary", "sequence_length", "gated_mlp")
        latent = ("head_dim", "value_head_dim", "kv_latent", "query_latent", "causal", "attention_window")
        return ModelShape(
            **{name: data[name] for name in (*plain, *latent, "experts", "experts_per_token", "expert_ffn")},
            **{name: data[name] or 0 for name in ("shared_expert_ffn", "dense_layers", "windowed_layers")},
            tied_embeddings=TIED.get(data["tied_embeddings"]),
            parameters=self.parameters,
        )

    @property
    def parameters(self) -> float | None:
        billions = self.cleaned_data["parameters_billions"]
        return None if billions is None else float(round(billions * BILLION))

    def clean(self) -> dict[str, object] | None:
        data = super().clean()
        given = self.cleaned_data
        hidden, heads, kv_heads = (given.get(name) for name in ("hidden", "heads", "kv_heads"))
        if hidden and heads and hidden % heads and not given.get("head_dim"):
            self.add_error("heads", gettext("The hidden size must be a multiple of the number of attention heads."))
        if heads and kv_heads and heads % kv_heads:
            self.add_error("kv_heads", gettext("The attention heads must be a multiple of the key and value heads."))
        self._check_experts()
        layers = given.get("layers")
        for name in ("dense_layers", "windowed_layers"):
            if layers and (given.get(name) or 0) > layers:
                self.add_error(name, gettext("The model does not have so many layers."))
        if given.get("windowed_layers") or given.get("attention_window"):
            both = gettext("Say how many tokens the window has, and how many layers have one.")
            ask_for(self, ["attention_window", "windowed_layers"], both)
        return data

    def _check_experts(self) -> None:
        given = self.cleaned_data
        experts, chosen = given.get("experts"), given.get("experts_per_token")
        if any(given.get(name) for name in EXPERTS):
            needed = gettext("A mixture of experts needs their number, how many a token uses, and the size of one.")
            ask_for(self, ["experts", "experts_per_token", "expert_ffn"], needed)
        if experts and chosen and chosen > experts:
            self.add_error("experts_per_token", gettext("A token cannot use more experts than there are."))
