"""A new key for the REST API."""

from django.core.management import BaseCommand, CommandParser
from django.db import transaction
from rest_framework_api_key.models import APIKey

from advisor.models import ApiKeyScope, KeyScope


class Command(BaseCommand):
    help = "Makes an API key and prints it; only a hash is kept, so it cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="who will use the key")
        parser.add_argument(
            "--scope",
            action="append",
            default=[],
            choices=KeyScope.values,
            help="what the key may do besides reading the catalog and asking studies; may be given several times",
        )

    @transaction.atomic
    def handle(self, *, name: str, scope: list[str], **options: object) -> None:
        row, key = APIKey.objects.create_key(name=name[:50])
        for one in dict.fromkeys(scope):
            ApiKeyScope.objects.create(key=row, scope=one)
        self.stderr.write("Send it as «Authorization: Api-Key KEY»; it is shown only now.")
        self.stdout.write(key)
