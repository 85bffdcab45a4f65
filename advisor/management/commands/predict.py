"""`manage.py predict`: one job on one server, by parts and with its range."""

import json
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandParser
from django.utils.translation import gettext as _

from advisor import answers
from advisor.engine.document import prediction_document
from advisor.engine.plans import plan_from_json
from advisor.engine.prediction import predict
from advisor.management.refusals import BadInput, bad_input_ends, described_workload, read_json
from advisor.wording import worded
from catalog import selectors as catalog


class Command(BaseCommand):
    help = "Predicts one job on one server of the catalog."

    def add_arguments(self, parser: CommandParser) -> None:
        job = parser.add_mutually_exclusive_group(required=True)
        job.add_argument("--workload", type=Path, metavar="FILE.json", help="see docs/workload.md")
        job.add_argument("--preset", metavar="KEY", help="a named job; GET /api/v1/presets/ and the form list them")
        parser.add_argument("--sku", required=True, metavar="PROVIDER/SKU", help="a server of the catalog")
        parser.add_argument("--gpus", type=int, required=True)
        parser.add_argument("--plan", help='as JSON, for example {"dp": 4, "tp": 2}; default: the best that fits')
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document on stdout")

    def handle(self, **options: Any) -> None:
        with bad_input_ends(self):
            document = worded(_document(options))
        if options["as_json"]:
            self.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False))
            return
        self.stdout.write(f"step {document['step_s']:.6f} s ({document['low_s']:.6f} to {document['high_s']:.6f} s)")
        for name, seconds in document["parts"].items():
            self.stdout.write(f"  {name:<26} {seconds:.6f} s")
        self.stdout.write(f"memory: {document['memory']['verdict']}")


def _document(options: dict[str, Any]) -> dict[str, Any]:
    workload, server = described_workload(options), catalog.server_spec(options["sku"])
    if server is None:
        raise BadInput(_("The catalog has no server %(sku)s; write it as provider/sku.") % {"sku": options["sku"]})
    traced = answers.measured_on(workload)
    plan = plan_from_json(read_json(options["plan"], "--plan")) if options["plan"] else None
    prediction = predict(workload, traced_accelerator=traced, server=server, gpus=options["gpus"], plan=plan)
    return {"sku": server.key, **prediction_document(prediction)}
