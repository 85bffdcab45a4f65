"""Names of the kinds of files that are told apart, marked for translation."""

from django.utils.translation import gettext_noop

KINDS = (
    gettext_noop("PNG image"),
    gettext_noop("JPEG image"),
    gettext_noop("GIF image"),
    gettext_noop("PDF document"),
    gettext_noop("program (ELF)"),
    gettext_noop("program (Windows)"),
    gettext_noop("Python pickle"),
    gettext_noop("NumPy array"),
    gettext_noop("HDF5 file"),
    gettext_noop("Parquet file"),
    gettext_noop("Arrow file"),
    gettext_noop("SQLite database"),
    gettext_noop("ZIP archive"),
    gettext_noop("zstd file"),
    gettext_noop("xz file"),
    gettext_noop("bzip2 file"),
    gettext_noop("7-Zip archive"),
    gettext_noop("RAR archive"),
    gettext_noop("tar archive"),
    gettext_noop("Nsight Compute report"),
    gettext_noop("DeepSpeed communication log"),
    gettext_noop("NCCL log"),
    gettext_noop("nccl-tests output"),
    gettext_noop("nvidia-smi topology matrix"),
    gettext_noop("dcgmi dmon output"),
    gettext_noop("nvidia-smi output"),
    gettext_noop("CSV table"),
    gettext_noop("PyTorch execution trace"),
    gettext_noop("JAX or TensorFlow trace"),
    gettext_noop("unknown"),
)
"""The readers name a kind in English (``profiling.formats``); ``profiling.messages`` puts it into the language."""
