"""A new key for the REST API."""

from django.core.management import BaseCommand, CommandParser
from rest_framework_api_key.models import APIKey


class Command(BaseCommand):
    help = "Makes an API key and prints it; only a hash is kept, so it cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="who will use the key")

    def handle(self, *, name: str, **options: object) -> None:
        _, key = APIKey.objects.create_key(name=name[:50])
        self.stderr.write("Send it as «Authorization: Api-Key KEY»; it is shown only now.")
        self.stdout.write(key)
