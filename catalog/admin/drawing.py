"""The topology drawing above the fabric's form."""

from dataclasses import fields

from django.core.exceptions import ObjectDoesNotExist
from django.forms import ModelForm
from django.utils.html import strip_tags
from django.utils.safestring import SafeString

from catalog.models import Fabric, Server
from catalog.specs import FabricSpec, TopologyClass
from catalog.topology_drawing import draw

MOST_DRAWN = 1024


def drawn(server: Server, fabric: Fabric | None) -> SafeString | None:
    """What the two rows say, published or not; None where there is too little to draw."""
    if fabric is None or fabric.topology not in set(TopologyClass) or not 0 < (server.gpu_count or 0) <= MOST_DRAWN:
        return None
    values = {entry.name: getattr(fabric, entry.name) for entry in fields(FabricSpec)}
    return draw(
        FabricSpec(**{**values, "topology": TopologyClass(fabric.topology)}),
        gpu_count=server.gpu_count,
        accelerator_name=_accelerator(server),
        sockets=server.sockets,
        numa_nodes=fabric.numa_nodes,
        gpus_per_pcie_switch=fabric.gpus_per_pcie_switch,
        ident="fabric-form",
    )


def _accelerator(server: Server) -> str:
    try:
        return server.accelerator.name if server.accelerator else server.accelerator_printed
    except ObjectDoesNotExist:
        return ""


def problems_of(form: ModelForm) -> list[str]:
    """What is wrong with the fields of a form, each with the field's label."""
    found = []
    for name, sentences in form.errors.items():
        label = f"{form.fields[name].label}: " if name in form.fields else ""
        found += [strip_tags(label + sentence) for sentence in sentences]
    return found
