"""The sentence that belongs to each code of the engine, translatable."""

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from advisor.engine.explain import EngineCode, VerdictCode
from profiling.notes import Parameter

_Text = object

SENTENCES: Mapping[EngineCode, _Text] = {
    EngineCode.ACCELERATOR_UNKNOWN: _(
        "The capture was made on “%(device)s”, which the catalog does not know, so it cannot be carried over to "
        "other hardware. Choose the accelerator by hand or describe the job."
    ),
    EngineCode.ACCELERATOR_UNNAMED: _(
        "The capture does not name the GPU that it was made on, so it cannot be carried over to other hardware. Choose "
        "the accelerator by hand or describe the job."
    ),
    EngineCode.ACCELERATOR_NOT_MEASURED: _(
        "No published measurements of matrix products on %(accelerator)s: predicted from its data sheet, with a wide "
        "range."
    ),
    EngineCode.ANCHOR_IMPOSSIBLE: _(
        "The measured step of %(step_s)s s on %(gpus)s GPUs is out of all proportion to this job; check the step time, "
        "the batch and the model."
    ),
    EngineCode.CAPTURED_FAMILY_NOT_COMPARED: _(
        "%(captured)s, on which the capture was made, is not offered both with NVLink and on PCIe in a way that can be "
        "compared; the verdict is for %(family)s."
    ),
    EngineCode.CAPTURE_NOT_DATA_PARALLEL: _(
        "The captured ranks exchange more than data-parallel ranks do (tensor, pipeline or expert parallel), so only "
        "the captured count of %(gpus)s GPUs is predicted. Describe the model to compare other partitionings."
    ),
    EngineCode.CAPTURE_WITHOUT_WORK: _(
        "The captured step holds nothing but communication: there is no computing to carry over to other hardware."
    ),
    EngineCode.COLLECTIVE_BYTES_ESTIMATED: _(
        "The capture has no message sizes: they were inferred from the time the exchanges took, so the range is wide."
    ),
    EngineCode.COUNT_NOT_COMPARED: _(
        "At the %(asked)s GPUs asked for there is nothing to compare: no kind of GPU is offered both with NVLink and "
        "on PCIe in so many, joined by a network that is stated. The verdict is for %(gpus)s GPUs."
    ),
    EngineCode.DOES_NOT_FIT: _("This plan does not fit into the memory of the GPU."),
    EngineCode.DTYPE_FALLBACK: _("The accelerator has no %(wanted)s: predicted with %(used)s."),
    EngineCode.FABRIC_ASSUMED: _(
        "Whether the GPUs of this server may copy to each other over PCIe is not known; the range covers both."
    ),
    EngineCode.FABRIC_UNKNOWN: _(
        "How the GPUs of this server are joined is not known; the range covers everything from PCIe without peer "
        "copies to the accelerator's own links."
    ),
    EngineCode.FIRST_OFFERS_USE_ONE_GPU: _(
        "Offers that use one GPU come first (%(count)s of them): there no link is needed, and NVLink is worth nothing."
    ),
    EngineCode.GRADIENT_SIZE_UNKNOWN: _(
        "The capture shows no exchange and the number of parameters is not known, so only one GPU is predicted. Give "
        "the number of parameters to compare several GPUs."
    ),
    EngineCode.GRADIENTS_ASSUMED: _(
        "The capture shows no exchange between GPUs: that its gradients are exchanged once a step is assumed, from the "
        "number of parameters; the range covers half and twice the bytes."
    ),
    EngineCode.GROUPS_ASSUMED: _(
        "The capture does not say which ranks exchange with each other: taken for data-parallel ranks of the whole job."
    ),
    EngineCode.HOST_BOUND_THERE: _(
        "The host decides about %(percent)s%% of the step there: it launches work too slowly for these GPUs. CUDA "
        "graphs, compiled code or a larger micro-batch cost less than a faster GPU or NVLink, neither of which "
        "shortens that part."
    ),
    EngineCode.INPUT_BOUND_THERE: _(
        "Loading data decides about %(percent)s%% of the step there: the GPUs wait for batches. More CPU cores, more "
        "loader workers or data prepared beforehand cost less than a faster GPU or NVLink, neither of which shortens "
        "that part."
    ),
    EngineCode.MARKET_OF_ONE_GPU: _(
        "The market premium rests on prices of one GPU of each form: no provider is known to sell both forms in "
        "servers of %(gpus)s GPUs."
    ),
    EngineCode.MARKET_OF_OTHER_PROVIDERS: _(
        "The market premium compares different providers, as none is known to sell both forms."
    ),
    EngineCode.MARKET_OF_OTHER_REGIONS: _(
        "The market premium compares different regions or kinds of tenancy of one provider."
    ),
    EngineCode.MEMORY_DIFFERS: _(
        "The NVLink side has %(nvlink_gib)s GiB on each GPU and the PCIe side %(pcie_gib)s GiB: part of what NVLink "
        "seems worth is memory."
    ),
    EngineCode.MEMORY_TIGHT: _("Memory will be tight: the plan may or may not fit."),
    EngineCode.MEMORY_UNKNOWN: _("How much memory the job needs is not known; whether it fits was not checked."),
    EngineCode.NO_CLEAR_WINNER: _(
        "No clear winner: %(count)s further offers lie within the range of the comparison with the first."
    ),
    EngineCode.NETWORK_UNKNOWN: _(
        "%(gpus)s GPUs take several of these servers, and the network between them is not known, so nothing is "
        "predicted there."
    ),
    EngineCode.NETWORKS_DIFFER: _(
        "The sides take %(nvlink)s servers with NVLink and %(pcie)s on PCIe, and the networks between them are not "
        "alike: part of what NVLink seems worth is the network."
    ),
    EngineCode.NO_LEGAL_PLAN: _("The job cannot be divided over the %(gpus)s GPUs asked for."),
    EngineCode.NO_OFFERS: _("No offer is left to compare."),
    EngineCode.NO_RATE_FOR_PRECISION: _(
        "No %(precision)s rate is known for %(accelerators)s, so nothing is predicted there."
    ),
    EngineCode.NO_STEP_TIMES: _(
        "The files hold no times of a step, so nothing can be predicted from them: add a trace of the job, or "
        "describe it."
    ),
    EngineCode.NOT_DIVIDED: _(
        "%(count)s offers are left out because it is not known how to divide the job over the GPUs of their servers."
    ),
    EngineCode.NOTHING_FITS: _("No plan fits on %(gpus)s GPUs; the leanest is %(short_gib)s GiB short."),
    EngineCode.OFFERS_DO_NOT_FIT: _(
        "%(count)s offers are left out because the job does not fit into their memory; the nearest is %(least_gib)s "
        "GiB short on each GPU."
    ),
    EngineCode.OFFERS_IN_OTHER_CURRENCY: _(
        "%(count)s offers are in another currency (%(currencies)s): listed, not ranked."
    ),
    EngineCode.OFFERS_MEMORY_UNKNOWN: _(
        "For %(count)s of the first %(first)s offers it is not known whether the job fits into memory. A capture with "
        "its peak of memory, or a description of the model, tells."
    ),
    EngineCode.OFFERS_NETWORK_UNKNOWN: _(
        "%(count)s offers are left out because %(gpus)s GPUs take several of their servers and the network between "
        "these is not known."
    ),
    EngineCode.OFFERS_TOO_OLD: _("%(count)s offers are left out because they were seen over %(days)s days ago."),
    EngineCode.ONLY_LARGER_SERVERS: _(
        "Not both forms are sold with exactly %(gpus)s GPUs: the smallest server has %(nvlink)s with NVLink and "
        "%(pcie)s on PCIe, and all of them are paid. Worth it or not is said only where it holds by the GPU and by the "
        "server."
    ),
    EngineCode.PLAN_INVALID: _("The plan's field %(field)s is unknown or has a value that no plan has."),
    EngineCode.REPLICAS_ASSUMED: _(
        "The capture shows no exchange between GPUs, so each is taken to serve on its own. If one copy of the model is "
        "spread over several GPUs, describe the model: its links then matter."
    ),
    EngineCode.REPLAY_NOT_POSSIBLE: _(
        "What waited for what cannot be told from the capture well enough to replay its step; each class of kernels is "
        "scaled instead, and overlap and idle time are taken to stay as they were."
    ),
    EngineCode.SERVERS_TOO_SMALL: _(
        "%(count)s offers are left out because their servers have fewer than the %(gpus)s GPUs needed."
    ),
    EngineCode.STEPS_ASSUMED: _("Cost and time are for %(steps)s steps, as no amount of work was given."),
    EngineCode.TRANSFER_UNVERIFIED: _(
        "How much of the captured communication was transfer and how much waiting for other ranks is not certain; the "
        "range covers both. Captures of all ranks tell the two apart."
    ),
    EngineCode.WEAK_SCALING: _(
        "With more GPUs each keeps the batch of the capture, so a step works through more samples."
    ),
    EngineCode.WHOLE_SERVER_PAID: _("On some servers not all GPUs are used; the whole server is paid for."),
}

VERDICTS: Mapping[VerdictCode, _Text] = {
    VerdictCode.WORTH_IT: _(
        "For this job NVLink is worth %(break_even_percent)+d%% over PCIe (80%% range %(low_percent)+d%% to "
        "%(high_percent)+d%%; %(family)s, %(gpus)s GPUs); the market asked %(market_percent)+d%% (newest price: "
        "%(seen)s). Worth it."
    ),
    VerdictCode.WORTH_IT_ASSUMED: _(
        "For this job NVLink is worth %(break_even_percent)+d%% over PCIe (80%% range %(low_percent)+d%% to "
        "%(high_percent)+d%%; %(family)s, %(gpus)s GPUs); the market asked %(market_percent)+d%% (newest price: "
        "%(seen)s). Worth it even at the low end, which allows for not knowing how the GPUs of one side are joined."
    ),
    VerdictCode.NOT_WORTH_IT: _(
        "For this job NVLink is worth %(break_even_percent)+d%% over PCIe (80%% range %(low_percent)+d%% to "
        "%(high_percent)+d%%; %(family)s, %(gpus)s GPUs); the market asked %(market_percent)+d%% (newest price: "
        "%(seen)s). Not worth it."
    ),
    VerdictCode.NO_CLEAR_WINNER: _(
        "For this job NVLink is worth %(break_even_percent)+d%% over PCIe (80%% range %(low_percent)+d%% to "
        "%(high_percent)+d%%; %(family)s, %(gpus)s GPUs); the market asked %(market_percent)+d%% (newest price: "
        "%(seen)s). No clear winner."
    ),
    VerdictCode.NO_GAIN: _(
        "For this job NVLink brings nothing over PCIe (80%% range %(low_percent)+d%% to %(high_percent)+d%%; "
        "%(family)s, %(gpus)s GPUs); the market asked %(market_percent)+d%% (newest price: %(seen)s). Not worth it."
    ),
    VerdictCode.NO_MARKET: _(
        "For this job NVLink is worth %(break_even_percent)+d%% over PCIe (80%% range %(low_percent)+d%% to "
        "%(high_percent)+d%%; %(family)s, %(gpus)s GPUs); there are no like offers of both to compare that with."
    ),
    VerdictCode.NO_PAIR: _(
        "NVLink cannot be judged: no kind of GPU that this job runs on is offered both with NVLink and on PCIe with "
        "the same number of GPUs, 2 or more."
    ),
    VerdictCode.NO_OFFERS: _("NVLink cannot be judged: no offer is left to compare. The notes say why."),
    VerdictCode.NOTHING_FITS: _(
        "NVLink cannot be judged: the job does not fit into the memory of any compared number of GPUs, from 2 up. A "
        "smaller batch per GPU or more GPUs are needed."
    ),
    VerdictCode.UNDIVIDED: _(
        "NVLink cannot be judged: the job cannot be divided over 2, 4 or 8 GPUs. A larger batch helps."
    ),
    VerdictCode.CAPTURED_COUNT: _(
        "NVLink cannot be judged: the ranks of the capture exchange more than data-parallel ranks do, so only its own "
        "number of GPUs (%(gpus)s) could be predicted, and captures are compared at 2, 4 and 8. Describe the model."
    ),
    VerdictCode.ONE_GPU_CAPTURED: _(
        "NVLink cannot be judged: the capture shows no exchange between GPUs, and the number of parameters is not "
        "known. Give the number of parameters."
    ),
}


def sentence(code: EngineCode | str, params: Mapping[str, Parameter]) -> str:
    """The sentence of a note or refusal, in the active language."""
    return str(SENTENCES[EngineCode(code)]) % dict(params)


def verdict_sentence(code: VerdictCode | str, params: Mapping[str, Parameter | None]) -> str:
    """The sentence on top, in the active language."""
    return str(VERDICTS[VerdictCode(code)]) % dict(params)
