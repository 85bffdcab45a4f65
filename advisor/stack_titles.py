"""Titles of the software stacks in the reader's language."""

from django.utils.translation import gettext_lazy as _

from advisor.labels import Names

STACK_TITLES: Names = {
    "megatron-core": _("Megatron-Core, NeMo or Megatron-Bridge with Transformer Engine"),
    "megatron-core-2026": _("Megatron-Core of NeMo 26.06 or later"),
    "megatron-2021": _("Megatron-LM or Megatron-DeepSpeed before FlashAttention"),
    "torch-compile": _("PyTorch with torch.compile"),
    "torch-fsdp": _("PyTorch FSDP without a compiler"),
    "torch-eager": _("PyTorch 2 without a compiler (DDP, Lightning, Hugging Face Trainer)"),
    "torch-1": _("PyTorch 1 (DDP)"),
    "deepspeed": _("DeepSpeed, Colossal-AI, InternEvo"),
    "jax": _("JAX (MaxText, Paxml)"),
    "tensorflow": _("TensorFlow, MXNet, PaddlePaddle"),
    "llm.c": _("llm.c"),
}
